# Neuron Kernel Explorer.  `make run` serves on http://localhost:10240, `make test` runs all tests; both install what
# they need first (docker/setup.sh).  BUILD=dir builds into another folder, SAN=1 with the sanitizers of memory and of what
# C leaves undefined, SAN=thread with that of threads, V=1 shows whole commands.

BUILD ?= build
LLVM ?= /usr/lib/llvm-22
VENV ?= build/venv
PORT ?= 10240
CC = gcc

PG_INC = -isystem /usr/include/postgresql
PYTHON_INC = -isystem /usr/include/python3.11 -isystem $(VENV)/lib/python3.11/site-packages/numpy/_core/include
WARN = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wformat=2
HARDEN = -fstack-protector-strong -fstack-clash-protection -fcf-protection -D_FORTIFY_SOURCE=3
OPT = -O2 -g $(HARDEN)
# LLVM's linker takes a tenth of the time of GNU's
LLD = -fuse-ld=lld -B$(LLVM)/bin
LDHARDEN = $(LLD) -pie -Wl,-z,relro,-z,now
ifeq ($(SAN),1)
OPT = -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined
LDHARDEN = $(LLD) -fsanitize=address,undefined
endif
ifeq ($(SAN),thread)
OPT = -O1 -g -fno-omit-frame-pointer -fsanitize=thread
LDHARDEN = $(LLD) -fsanitize=thread
endif
ifeq ($(SAN),fuzz)
CC = clang-22
OPT = -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
LDHARDEN = $(LLD) -fsanitize=fuzzer,address,undefined
endif
# the same sources give the same bytes wherever they lie and are built: no paths of this machine in what is compiled
SAME = -ffile-prefix-map=$(CURDIR)=. -ffile-prefix-map=$(BUILD)=build
CFLAGS = -std=c17 -D_GNU_SOURCE $(OPT) $(SAME) -fPIC $(WARN) $(WERROR) \
  -Icompiler -Iexplorer -I$(BUILD)/gen -isystem $(LLVM)/include -MMD -MP

MLIR_LIBS = -Wl,--start-group $(wildcard $(LLVM)/lib/libMLIRCAPI*.a) -Wl,--end-group \
  -L$(LLVM)/lib -lMLIR -lMLIRExecutionEngineShared -lLLVM-22 -lstdc++ -Wl,-rpath,$(LLVM)/lib
COMMON_LIBS = -ljansson -lprotobuf-c -lcrypto -larchive -lz -lm
SERVER_LIBS = -lseccomp -lgnutls -lcurl -lsqlite3 -lpq -lzstd $(COMMON_LIBS) -lpthread
RUNNER_LIBS = -lcurl -lsqlite3 -lpq -lzstd $(COMMON_LIBS) -lpthread
WORKER_LIBS = $(MLIR_LIBS) -lpython3.11 -lseccomp $(COMMON_LIBS)

# the first words of a recipe's line: shows `CC file.c` instead of the command, unless V=1
short = $(if $(filter 1,$(V)),,@$(info $(1)))
srcs = $(sort $(wildcard $(addsuffix /*.c,$(1))))
# the same, including subfolders
tree = $(sort $(shell find $(1) -name '*.c'))
objs = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))

COMPILER_SRC := $(call tree,$(addprefix compiler/,base diff hlo nki trace linalg ir passes nisa sim neff interp lesson driver rpc mcp aside lsp))
# restrictions that a process puts on itself: the server and the workers
WALL_SRC := $(addprefix explorer/jail/,caps.c confine.c landlock.c seccomp.c)
SERVER_SRC := $(call srcs,explorer $(addprefix explorer/,http api ce job work pool session store preview)) $(WALL_SRC)
WORKER_SRC := $(call srcs,$(addprefix explorer/,worker worker/memory jail)) explorer/pool/wire.c
# connects a Neuron host to a server
RUNNER_SRC := $(call srcs,explorer/runner explorer/store)
UNIT_SRC := $(call srcs,tests/unit)
PROTO_OBJ := $(BUILD)/obj/gen/hlo.pb-c.o
COMPILER_LIB := $(BUILD)/lib/libnkxcompiler.a
PY_SRC := $(shell find compiler/trace/python -name '*.py' 2>/dev/null)
WEB_SRC := $(shell find web/src web/public -type f 2>/dev/null) $(wildcard web/package*.json web/*.mjs web/tsconfig.json)

all: build
.PHONY: all build run test quick bench nightly lint asan clean setup setup-test binaries web python python-shims wheel

# ---- set-up: installs missing packages before anything is built --------------------------------------------------

setup:
	@docker/setup.sh build
setup-test:
	@docker/setup.sh test

build: setup
	@$(MAKE) --no-print-directory -j$(shell nproc) binaries python web

# ---- the product ---------------------------------------------------------------------------------------------

binaries: $(BUILD)/bin/nkx $(BUILD)/bin/nkx-worker $(BUILD)/bin/nkx-runner $(BUILD)/dialects.irdl examples
python: $(BUILD)/python/_nkx.so $(BUILD)/python/_nkxc.so python-shims
web: $(BUILD)/web/index.html

.PHONY: examples
examples:
	@mkdir -p $(BUILD)/examples/nki $(BUILD)/examples/lessons && cp explorer/examples/*.py $(BUILD)/examples/ && \
	  cp explorer/examples/nki/*.py $(BUILD)/examples/nki/ && rm -f $(BUILD)/examples/lessons/* && cp explorer/lessons/*.md $(BUILD)/examples/lessons/

# libmicrohttpd with its recv renamed, so that explorer/http/guard.c checks every byte that it reads
HTTP_LIB := $(BUILD)/lib/libmicrohttpd-guarded.a
$(HTTP_LIB):
	@mkdir -p $(@D)
	$(call short,OBJCOPY $@)objcopy -D --redefine-sym recv=guard_recv $$($(CC) -print-file-name=libmicrohttpd.a) $@

$(BUILD)/bin/nkx: $(call objs,$(SERVER_SRC)) $(COMPILER_LIB) $(HTTP_LIB)
	@mkdir -p $(@D)
	$(call short,LINK $@)$(CC) $(LDHARDEN) -o $@ $^ $(SERVER_LIBS)

$(BUILD)/bin/nkx-worker: $(call objs,$(WORKER_SRC)) $(COMPILER_LIB)
	@mkdir -p $(@D)
	$(call short,LINK $@)$(CC) $(LDHARDEN) -Wl,--export-dynamic-symbol=register_printf_type -o $@ $^ $(WORKER_LIBS)

$(BUILD)/bin/nkx-runner: $(call objs,$(RUNNER_SRC)) $(COMPILER_LIB)
	@mkdir -p $(@D)
	$(call short,LINK $@)$(CC) $(LDHARDEN) -o $@ $^ $(RUNNER_LIBS)

$(COMPILER_LIB): $(call objs,$(COMPILER_SRC)) $(PROTO_OBJ)
	@mkdir -p $(@D)
	@rm -f $@
	$(call short,AR $@)ar rcsD $@ $^

$(BUILD)/gen/hlo.pb-c.c: compiler/hlo/hlo.proto
	@mkdir -p $(@D)
	$(call short,PROTOC $<)protoc-c --proto_path=compiler/hlo --c_out=$(BUILD)/gen hlo.proto
$(BUILD)/gen/hlo.pb-c.h: $(BUILD)/gen/hlo.pb-c.c ;
$(PROTO_OBJ): $(BUILD)/gen/hlo.pb-c.c
	@mkdir -p $(@D)
	$(call short,CC $<)$(CC) $(filter-out $(WARN) -Werror,$(CFLAGS)) -c -o $@ $<
$(call objs,$(wildcard compiler/hlo/*.c)): | $(BUILD)/gen/hlo.pb-c.h

# Release and version of the pipeline.  Computed by every build and written only when it has changed, so it is never stale.
$(BUILD)/gen/version.h: FORCE
	@mkdir -p $(@D)
	@release=$$(cat VERSION) && pipeline=$$(compiler/driver/version.sh $(LLVM)) && \
	  printf '#define NKX_RELEASE "%s"\n#define NKX_PIPELINE "%s"\n' "$$release" "$$pipeline" > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else echo GEN $@; mv $@.new $@; fi
$(call objs,compiler/driver/pipeline.c): $(BUILD)/gen/version.h
.PHONY: FORCE
FORCE:

# the dialects' IRDL text, as a C string and as a file for mlir-opt
$(BUILD)/gen/dialects.inc: compiler/ir/dialects.irdl
	@mkdir -p $(@D)
	$(call short,GEN $@)sed 's/\\/\\\\/g; s/"/\\"/g; s/.*/"&\\n"/' $< > $@
$(BUILD)/dialects.irdl: compiler/ir/dialects.irdl
	@mkdir -p $(@D)
	@cp $< $@
$(call objs,$(wildcard compiler/ir/*.c)): | $(BUILD)/gen/dialects.inc

$(BUILD)/gen/%.inc: explorer/api/%.json
	@mkdir -p $(@D)
	$(call short,GEN $@)sed 's/\\/\\\\/g; s/"/\\"/g; s/.*/"&\\n"/' $< > $@
$(call objs,explorer/api/documents.c): $(BUILD)/gen/openapi.inc $(BUILD)/gen/ops.inc
$(call objs,explorer/api/cards.c): $(BUILD)/gen/operations.inc

# the characters of the preview's typefaces, drawn by a program of the build
FONTS ?= /usr/share/fonts/truetype/dejavu
ATLAS := $(BUILD)/gen/atlas
$(ATLAS): explorer/preview/font/atlas.c
	@mkdir -p $(@D)
	$(call short,CC $<)gcc -std=c17 -O1 $(WARN) $$(pkg-config --cflags freetype2) -o $@ $< $$(pkg-config --libs freetype2)
$(BUILD)/gen/atlas.inc: $(ATLAS)
	$(call short,GEN $@)$(ATLAS) $(FONTS)/DejaVuSansMono.ttf:19:code $(FONTS)/DejaVuSans.ttf:24:text \
	  $(FONTS)/DejaVuSans-Bold.ttf:42:title > $@.new && mv $@.new $@
$(call objs,explorer/preview/glyphs.c): $(BUILD)/gen/atlas.inc

# the store's migrations in the order of their numbers: {1, "text"},
$(BUILD)/gen/migrations.inc: $(wildcard explorer/store/migrate/*.sql)
	@mkdir -p $(@D)
	$(call short,GEN $@)for f in $(sort $^); do n=$$(basename $$f | sed 's/_.*//; s/^0*//'); echo "{$$n,"; \
	  sed 's/\\/\\\\/g; s/"/\\"/g; s/.*/"&\\n"/' $$f; echo "},"; done > $@
$(call objs,$(wildcard explorer/store/*.c)): | $(BUILD)/gen/migrations.inc
$(call objs,explorer/store/db_pg.c explorer/store/bulletin.c explorer/store/peers.c): CFLAGS += $(PG_INC)

$(call objs,$(wildcard compiler/trace/*.c compiler/trace/*/*.c compiler/package/*.c explorer/worker/*.c explorer/worker/memory/*.c)): CFLAGS += $(PYTHON_INC)
$(call objs,compiler/driver/paths.c): CFLAGS += -DNKX_VENV='"$(shell realpath -sm --relative-to=$(BUILD) $(VENV))"'
$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call short,CC $<)$(CC) $(CFLAGS) -c -o $@ $<

# importable packages: the shims, and the tracer and the compiler as extension modules
python-shims: $(PY_SRC)
	@mkdir -p $(BUILD)/python && rm -rf $(BUILD)/python/nkx/stubs
	@cp -rp compiler/trace/python/. $(BUILD)/python/
	@$(VENV)/bin/python3 -m compileall -q $(BUILD)/python # the worker writes no bytecode: without it, it compiles all at each start
$(BUILD)/python/_nkx.so: $(COMPILER_LIB)
	@mkdir -p $(@D)
	$(call short,LINK $@)$(CC) $(LLD) $(filter -fsanitize%,$(OPT)) -shared -Wl,-z,relro,-z,now -Wl,-u,PyInit__nkx -o $@ $< -ljansson -lprotobuf-c -lm
$(BUILD)/python/_nkxc.so: $(call objs,$(call srcs,compiler/package)) $(COMPILER_LIB) compiler/package/exports.map
	@mkdir -p $(@D)
	$(call short,LINK $@)$(CC) $(LLD) $(filter -fsanitize%,$(OPT)) -shared -Wl,-z,relro,-z,now,--version-script=$(filter %.map,$^) -o $@ $(filter-out %.map,$^) $(MLIR_LIBS) $(COMMON_LIBS)

# the packages as an installable wheel
wheel: setup
	@$(MAKE) --no-print-directory -j$(shell nproc) python
	$(VENV)/bin/python3 compiler/package/wheel.py $(BUILD)/python $(BUILD)/wheel

# this version of the compiler, for a server of a later one to offer beside its own: RELEASE=/srv/nkx-6 make release
.PHONY: release
RELEASE ?= $(BUILD)/release/$(shell cat VERSION)-$(shell compiler/driver/version.sh $(LLVM))
release: build
	@mkdir -p $(dir $(RELEASE))
	$(VENV)/bin/python3 dev/release.py $(BUILD) $(RELEASE)

# what the product consists of, as an SPDX document
.PHONY: sbom
sbom: build
	$(VENV)/bin/python3 dev/sbom.py $(BUILD) $(BUILD)/nkx.spdx.json

# writes the page's types from openapi.json; the page's build fails if they are out of date
.PHONY: types
types: setup
	$(VENV)/bin/node web/types.mjs
$(BUILD)/web/index.html: $(WEB_SRC) explorer/api/openapi.json
	$(call short,WEB $(BUILD)/web)cd web && PATH="$(CURDIR)/$(VENV)/bin:$$PATH" npm run --silent build -- --outdir="$(abspath $(BUILD))/web"

run: build
	$(BUILD)/bin/nkx serve --port $(PORT) --confine as-root

# ---- for contributors ----------------------------------------------------------------------------------------

# the compile commands, for clangd; written anew when a command has changed
.PHONY: compile_commands.json dev
compile_commands.json:
	@$(MAKE) --no-print-directory -nB V=1 binaries python unit-bin | $(VENV)/bin/python3 dev/compile_commands.py $@
# builds, prepares this checkout for editing, and then builds and restarts the server at each change
dev: build setup-test compile_commands.json
	@dev/install-hook.sh
	@$(VENV)/bin/python3 dev/watch.py --port $(PORT) --build $(BUILD)

# ---- tests ---------------------------------------------------------------------------------------------------

UNIT_BIN := $(patsubst tests/unit/%.c,$(BUILD)/test/%,$(UNIT_SRC))
# unit tests that need MLIR are called *_mlir.c, those that need CPython *_py.c; the others link neither
$(BUILD)/test/%_mlir: $(BUILD)/obj/tests/unit/%_mlir.o $(COMPILER_LIB)
	@mkdir -p $(@D)
	$(call short,LINK $@)$(CC) $(LDHARDEN) -o $@ $^ $(MLIR_LIBS) $(COMMON_LIBS) -lcmocka
$(BUILD)/test/%_py: $(BUILD)/obj/tests/unit/%_py.o $(COMPILER_LIB)
	@mkdir -p $(@D)
	$(call short,LINK $@)$(CC) $(LDHARDEN) -o $@ $^ -lpython3.11 $(COMMON_LIBS) -lcmocka
# unit tests of the server and of the jail are called test_explorer_*.c
$(BUILD)/test/test_explorer_%: $(BUILD)/obj/tests/unit/test_explorer_%.o \
  $(filter-out $(BUILD)/obj/explorer/main.o,$(call objs,$(sort $(SERVER_SRC) $(call srcs,explorer/jail)))) \
  $(COMPILER_LIB) $(HTTP_LIB)
	@mkdir -p $(@D)
	$(call short,LINK $@)$(CC) $(LDHARDEN) -o $@ $^ $(SERVER_LIBS) -lcmocka
$(BUILD)/test/%: $(BUILD)/obj/tests/unit/%.o $(COMPILER_LIB)
	@mkdir -p $(@D)
	$(call short,LINK $@)$(CC) $(LDHARDEN) -o $@ $^ $(COMMON_LIBS) -lcmocka

# MLIR's C interface as a shared object (tests/support/oracles/mlir.py)
$(BUILD)/test/libmlir-c.so: $(wildcard $(LLVM)/lib/libMLIRCAPI*.a)
	@mkdir -p $(@D)
	$(call short,LINK $@)$(CC) $(LLD) -shared -o $@ -Wl,--whole-archive $^ -Wl,--no-whole-archive $(MLIR_LIBS)

$(BUILD)/obj/tests/warm/nkx_warm.o: CFLAGS += $(PYTHON_INC)
# the terminal's commands in forks of a warm process (tests/support/warm.py)
$(BUILD)/test/nkx-warm: $(BUILD)/obj/tests/warm/nkx_warm.o $(COMPILER_LIB)
	@mkdir -p $(@D)
	$(call short,LINK $@)$(CC) $(LDHARDEN) -Wl,--wrap=trace_init,--wrap=ir_init -o $@ $^ $(WORKER_LIBS)

# runs NISA on arrays for the tests (tests/support/simulator.py)
$(BUILD)/test/nisa_values: $(BUILD)/obj/tests/sim/nisa_values.o $(COMPILER_LIB)
	@mkdir -p $(@D)
	$(call short,LINK $@)$(CC) $(LDHARDEN) -o $@ $^ $(MLIR_LIBS) $(COMMON_LIBS)

# a library with libnrt's interface that runs simulation packages, for the tests of neff/device.h
STAND_IN := $(BUILD)/test/neuron/libnrt.so.1
$(BUILD)/test/test_device $(BUILD)/test/test_device_run: | $(STAND_IN)
$(STAND_IN): $(BUILD)/obj/tests/neuron/libnrt.o $(COMPILER_LIB) tests/neuron/libnrt.map
	@mkdir -p $(@D)
	$(call short,LINK $@)$(CC) $(LLD) $(filter -fsanitize%,$(OPT)) -shared -Wl,-z,relro,-z,now,--version-script=$(filter %.map,$^) -o $@ $(filter-out %.map,$^) $(MLIR_LIBS) $(COMMON_LIBS)

$(BUILD)/bench/hlo_speed: $(BUILD)/obj/tests/bench/hlo_speed.o $(COMPILER_LIB)
	@mkdir -p $(@D)
	$(call short,LINK $@)$(CC) $(LDHARDEN) -o $@ $^ $(COMMON_LIBS)
$(BUILD)/bench/diff_speed: $(BUILD)/obj/tests/bench/diff_speed.o $(COMPILER_LIB)
	@mkdir -p $(@D)
	$(call short,LINK $@)$(CC) $(LDHARDEN) -o $@ $^
# times NISA text: tests/measured
$(BUILD)/bench/measure: $(BUILD)/obj/tests/measured/measure.o $(COMPILER_LIB)
	@mkdir -p $(@D)
	$(call short,LINK $@)$(CC) $(LDHARDEN) -o $@ $^ $(MLIR_LIBS) $(COMMON_LIBS)

# the worker with faults that a test plants in its passes
$(BUILD)/test/nkx-worker-planted: $(call objs,$(WORKER_SRC)) $(call objs,$(call srcs,tests/mutation)) $(COMPILER_LIB)
	@mkdir -p $(@D)
	$(call short,LINK $@)$(CC) $(LDHARDEN) -Wl,--export-dynamic-symbol=register_printf_type -o $@ $^ $(WORKER_LIBS)

# the worker of an earlier version of the compiler
$(BUILD)/test/nkx-worker-earlier: $(call objs,$(WORKER_SRC)) $(call objs,$(call srcs,tests/versions)) $(COMPILER_LIB)
	@mkdir -p $(@D)
	$(call short,LINK $@)$(CC) $(LDHARDEN) -Wl,--export-dynamic-symbol=register_printf_type \
	  -Wl,--wrap=pipeline_version,--wrap=release_version,--wrap=balance_engines -o $@ $^ $(WORKER_LIBS)

.PHONY: unit-bin
unit-bin: $(UNIT_BIN) $(STAND_IN) $(BUILD)/test/nisa_values $(BUILD)/test/libmlir-c.so $(BUILD)/test/nkx-warm $(BUILD)/bench/measure $(BUILD)/test/nkx-worker-planted $(BUILD)/test/nkx-worker-earlier

test: setup-test
	@$(MAKE) --no-print-directory -j$(shell nproc) binaries python web unit-bin
	@$(MAKE) --no-print-directory -j$(shell nproc) BUILD=build-fuzz VENV=$(VENV) SAN=fuzz fuzz-bin
	@BUILD=$(BUILD) VENV=$(VENV) tests/run.sh

# for use while working, in a minute and a half: the unit tests, the golden tests of passes, and a sample of core
quick: setup-test
	@$(MAKE) --no-print-directory -j$(shell nproc) binaries python unit-bin
	@BUILD=$(BUILD) VENV=$(VENV) SUITES="unit lit sample" tests/run.sh

# one suite: make test-unit, test-lit, test-fuzz, test-core, test-sample, test-api, …, test-browser, test-page (tests/run.sh)
test-%: setup-test
	@$(MAKE) --no-print-directory -j$(shell nproc) binaries python web unit-bin
	@[ "$*" != fuzz ] || $(MAKE) --no-print-directory -j$(shell nproc) BUILD=build-fuzz VENV=$(VENV) SAN=fuzz fuzz-bin
	@BUILD=$(BUILD) VENV=$(VENV) SUITES=$* tests/run.sh

# all long sets, or only some: make nightly SETS="random"
nightly: setup-test
	@$(MAKE) --no-print-directory -j$(shell nproc) binaries python web unit-bin
	@$(MAKE) --no-print-directory -j$(shell nproc) BUILD=build-fuzz VENV=$(VENV) SAN=fuzz PLAIN=$(BUILD) fuzz-bin sanitized-bin
	@$(MAKE) --no-print-directory -j$(shell nproc) BUILD=build-asan VENV=$(VENV) SAN=1 python
	@BUILD=$(BUILD) VENV=$(VENV) tests/nightly.sh

bench: setup-test
	@$(MAKE) --no-print-directory -j$(shell nproc) binaries python web $(BUILD)/bench/diff_speed $(BUILD)/bench/hlo_speed $(BUILD)/bench/measure $(BUILD)/test/nisa_values
	@BUILD=$(BUILD) PYTHONPATH=tests $(VENV)/bin/python3 tests/bench/bench.py
	@BUILD=$(BUILD) PYTHONPATH=tests $(VENV)/bin/python3 tests/bench/load.py
	@BUILD=$(BUILD) PYTHONPATH=tests $(VENV)/bin/python3 tests/bench/memory.py
	@BUILD=$(BUILD) PYTHONPATH=tests $(VENV)/bin/python3 tests/bench/simulator.py
	@BUILD=$(BUILD) PYTHONPATH=tests $(VENV)/bin/python3 tests/bench/check.py
	@BUILD=$(BUILD) PYTHONPATH=tests $(VENV)/bin/python3 tests/bench/package.py
	@BUILD=$(BUILD) PYTHONPATH=tests $(VENV)/bin/python3 tests/bench/roofline.py --no-bars
	@BUILD=$(BUILD) PYTHONPATH=tests $(VENV)/bin/python3 tests/bench/peers.py --no-bars
	@BUILD=$(BUILD) PYTHONPATH=tests $(VENV)/bin/python3 tests/bench/nki.py
	@BUILD=$(BUILD) PYTHONPATH=tests $(VENV)/bin/python3 tests/bench/page.py

# the C tests, and `nkx compile` of every example, under AddressSanitizer and UBSan
asan: setup-test
	@$(MAKE) --no-print-directory -j$(shell nproc) BUILD=build-asan VENV=$(VENV) SAN=1 binaries unit-bin
	@$(MAKE) --no-print-directory BUILD=build-asan VENV=$(VENV) python-shims
	@VENV=$(VENV) tests/asan.sh build-asan

# libFuzzer targets, built separately with clang: SECONDS_EACH=600 TARGETS="job explorer_frame" make fuzz.  Only the code
# that they reach is built: base, the readers, the job parser and the server.
FUZZ_BIN := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZED_SRC := $(call srcs,$(addprefix compiler/,base diff hlo ir lesson nisa sim neff)) $(addprefix compiler/driver/,job.c job_write.c job_value.c job_resume.c job_by_hand.c by_hand.c patterns.c pipeline.c accuracy.c frame_scan.c gather.c comparison.c sources.c source_table.c vendor_stage.c cards.c nki_help.c device_report.c device_run.c summary.c check_compare.c why.c result_stage.c frames.c shrink.c parting.c parting_lines.c parting_value.c result_file.c) \
  $(addprefix compiler/mcp/,mcp.c tools.c tell_result.c tell_stage.c tell_why.c) compiler/rpc/rpc.c compiler/nki/calls.c compiler/nki/refused.c \
  compiler/trace/precheck.c
FUZZED_LIB := $(BUILD)/lib/libfuzzed.a
$(FUZZED_LIB): $(call objs,$(FUZZED_SRC)) $(PROTO_OBJ)
	@mkdir -p $(@D)
	@rm -f $@
	$(call short,AR $@)ar rcsD $@ $^
$(call objs,$(wildcard tests/fuzz/*.c)): CFLAGS += -Itests/fuzz
$(BUILD)/obj/tests/fuzz/fuzz_source.o: CFLAGS += $(PYTHON_INC)
$(BUILD)/fuzz/fuzz_%_mlir: $(BUILD)/obj/tests/fuzz/fuzz_%_mlir.o $(FUZZED_LIB)
	@mkdir -p $(@D)
	$(call short,LINK $@)$(CC) $(LDHARDEN) -o $@ $^ $(MLIR_LIBS) $(COMMON_LIBS)
$(BUILD)/fuzz/fuzz_explorer_%: $(BUILD)/obj/tests/fuzz/fuzz_explorer_%.o $(BUILD)/obj/tests/fuzz/serving.o \
  $(filter-out $(BUILD)/obj/explorer/main.o,$(call objs,$(SERVER_SRC))) $(FUZZED_LIB) $(HTTP_LIB)
	@mkdir -p $(@D)
	$(call short,LINK $@)$(CC) $(LDHARDEN) -o $@ $^ $(SERVER_LIBS)
$(BUILD)/fuzz/fuzz_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(FUZZED_LIB)
	@mkdir -p $(@D)
	$(call short,LINK $@)$(CC) $(LDHARDEN) -o $@ $^ $(COMMON_LIBS)

# the calls of libnrt, each failing in turn, and the container's tests: without MLIR, so that leaks are looked for.  The library
# that stands in for libnrt is that of the plain build.
.PHONY: sanitized-bin
PLAIN ?= build
sanitized-bin: $(BUILD)/sanitized/test_device $(BUILD)/sanitized/test_device_run $(BUILD)/sanitized/test_neff
	@mkdir -p $(BUILD)/sanitized/neuron
	@ln -sfn $(abspath $(PLAIN))/test/neuron/libnrt.so.1 $(BUILD)/sanitized/neuron/libnrt.so.1
$(BUILD)/sanitized/%: $(BUILD)/obj/tests/unit/%.o $(FUZZED_LIB)
	@mkdir -p $(@D)
	$(call short,LINK $@)$(CC) $(LLD) -fsanitize=fuzzer-no-link,address,undefined -o $@ $^ $(COMMON_LIBS) -lcmocka -ldl

.PHONY: fuzz fuzz-bin
fuzz-bin: $(FUZZ_BIN)
fuzz: setup-test
	@$(MAKE) --no-print-directory -j$(shell nproc) BUILD=build-fuzz VENV=$(VENV) SAN=fuzz fuzz-bin
	@BUILD=build-fuzz tests/fuzz/run.sh

C_FILES = $(shell git ls-files '*.c' '*.h')
lint: setup-test
	@$(MAKE) --no-print-directory -j$(shell nproc) $(BUILD)/gen/hlo.pb-c.h $(BUILD)/gen/dialects.inc $(BUILD)/gen/migrations.inc $(BUILD)/gen/openapi.inc $(BUILD)/gen/ops.inc $(BUILD)/gen/operations.inc $(BUILD)/gen/version.h
	$(call short,FORMAT)clang-format-22 --dry-run -Werror $(C_FILES)
	$(call short,LINT)$(VENV)/bin/python3 tests/lint/lint.py --build $(BUILD)
	$(VENV)/bin/python3 -m pytest -q -p no:cacheprovider tests/lint
	@$(MAKE) --no-print-directory -j$(shell nproc) BUILD=build-lint VENV=$(VENV) WERROR=-Werror OPT="-O2 -g $(HARDEN)" binaries python unit-bin
	$(call short,CPPCHECK)cppcheck --quiet --error-exitcode=1 --std=c11 --enable=warning,performance,portability --inline-suppr \
	  --suppress=missingInclude --suppress=unknownMacro --suppress=nullPointerOutOfMemory \
	  --suppress=internalAstError --suppress=nullPointerRedundantCheck --library=python -Icompiler -Iexplorer -j2 \
	  $(filter %.c,$(C_FILES))
	$(call short,TYPES web)cd web && PATH="$(CURDIR)/$(VENV)/bin:$$PATH" npm run --silent check

clean:
	rm -rf $(BUILD)/obj $(BUILD)/gen $(BUILD)/bin $(BUILD)/lib $(BUILD)/python $(BUILD)/web $(BUILD)/test

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
