#!/bin/sh
# The sets of `make nightly`: too long for `make test`.  They run one after the other, each one's own output is shown when
# it fails, and at the end there is one summary line per set; exit status 1 if any failed.
#   BUILD: where the product was built; VENV: the Python environment; SETS: only these
set -u
cd "$(dirname "$0")/.."
BUILD=${BUILD:-build}
VENV=${VENV:-build/venv}
export BUILD VENV PATH="$PWD/$VENV/bin:/usr/lib/llvm-22/bin:$PATH"
pytest="python3 -m pytest -q --tb=short -n 2 --dist loadgroup"
pytest_one="python3 -m pytest -q --tb=short" # those that count processes
script="env PYTHONPATH=tests python3"

# name, command; its summary says what its tests noted as figures, and the last line that it prints
all_sets() {
  cat <<END
more     NKX_NIGHTLY=1 $pytest -m nightly tests
cases    $pytest tests
runners  NKX_NIGHTLY=1 NKX_CUT_S=30 $pytest_one tests/api/test_runner_networks.py tests/api/test_runners.py
operations NKX_OPERATIONS=all $pytest tests/conformance/test_operations.py
jax      NKX_JAX_NISA=all NKX_JAX_TARGETS=all $pytest tests/conformance/test_jax_nisa.py
programs NKX_RANDOM_JAX=600 $pytest tests/conformance/test_random_jax.py
sim      NKX_SIM_CASES=150 $pytest tests/sim
dumps    $pytest -rs tests/sim/test_dumps.py
indices  NKX_INDEX_CASES=3000 $pytest tests/trace/test_index_cases.py
complex  NKX_COMPLEX_CALLS=1200 $pytest tests/trace/test_complex.py tests/conformance/test_complex.py
calls    NKX_OPERATION_CALLS=20000 $pytest tests/conformance/test_operations.py -k more_drawn_calls
nki-ast  NKX_NKI_MUTATIONS=600000 $pytest tests/nki_kernels/test_mutations.py
by-hand  NKX_BY_HAND=all $pytest tests/conformance/test_by_hand.py
resume   NKX_RESUME=all NKX_RESUME_CORRUPT=200 $pytest tests/conformance/test_resume.py
nki-views NKX_NKI=all $pytest tests/nki_kernels/test_views.py -k random
nki-rand NKX_NKI=all NKX_RANDOM_NKI=1000 $pytest tests/nki_kernels/test_random_nki.py
nki-fuzz NKX_NKI_FUZZ=1800 $pytest tests/nki_kernels/test_upgrade.py -k mutated_kernels
random   NKX_RANDOM_KERNELS=2000 NKX_RANDOM_TARGETS=all $pytest tests/conformance/test_random_kernels.py
rows     NKX_ROW_ROUNDS=60 $pytest tests/passes/test_rows_in_other_orders_values.py
images   NKX_IMAGE_ROUNDS=60 $pytest tests/passes/test_image_products_values.py
borders  NKX_BORDER_ROUNDS=60 $pytest tests/passes/test_borders_values.py
sbuf     NKX_BIG=1 NKX_SPILL_PROGRAMS=60 NKX_SPILL_TAILS=60 $pytest tests/conformance/test_sbuf_pressure.py tests/passes/test_insert_spill_reload_values.py
examples NKX_FULL_EXAMPLES=1 $pytest tests/conformance/test_examples.py -k decoder_layer
kills    NKX_KILLS=200 $pytest_one tests/jail/test_zygotes.py
kernels  NKX_KERNELS=all $pytest -rs tests/kernels
payloads NKX_PAYLOADS=all $pytest tests/browser/test_hostile.py
nki      NKX_NKI=all $pytest tests/nki_kernels
journeys NKX_JOURNEYS=all $pytest tests/browser/test_journeys.py
follow   NKX_FOLLOW=all $pytest tests/browser/test_follow.py
page     $script tests/bench/page.py
shapes   NKX_SHAPES=all $pytest tests/conformance/test_shapes.py
store    NKX_STORE_KILLS=500 $pytest tests/store
outage   NKX_OUTAGE_S=60 $pytest -n 0 tests/store/test_postgresql.py -k without_its_database
hostile  $pytest_one tests/hostile
names    NKX_HOSTILE_NAMES=100000 $pytest_one tests/jail/test_names.py
channels NKX_CHANNEL_ROUNDS=4 $pytest_one tests/jail/test_channels.py
jails    $script tests/jail/cost.py
clock    $pytest_one tests/faults/test_clock.py
mutation NKX_FAULTS=all $pytest tests/passes/test_mutation.py tests/cli/test_shrink.py
faults   NKX_FAULT_SECONDS=900 $pytest_one tests/faults/test_each_fails.py
disk     $pytest_one tests/faults/test_disk.py
guess    $script tests/store/guess.py 2000
mix      $script tests/load/mix.py H-mix
L4       $script tests/load/mix.py L4
N8       $script tests/load/mix.py N8
L1       $script tests/load/steady.py L1
L2       $script tests/load/steady.py L2
L3       $script tests/load/steady.py L3
sessions $script tests/load/sessions.py
converge NKX_SESSION_RUNS=500 $pytest_one tests/api/test_sessions.py -k random_edits
growth   $pytest_one tests/bench/test_growth.py
timing   $script tests/store/timing.py 5000
fuzz     BUILD=build-fuzz SECONDS_EACH=600 FUZZ_TIMEOUT=10 tests/fuzz/run.sh
libnrt   (export ASAN_OPTIONS=detect_leaks=1; for t in device device_run neff; do build-fuzz/sanitized/test_\$t || exit 1; done)
libnrt-py tests/asan_python.sh build-asan
packages NKX_NIGHTLY=1 $pytest tests/api/test_neff.py
http     $pytest -s tests/load/test_http_load.py
openapi  NKX_SCHEMATHESIS=30 $pytest tests/api/test_openapi.py
root     $script tests/deploy/clean_root.py
machine  $script tests/deploy/machine.py
soak     $script tests/load/soak.py
site     NKX_SITE_ROUNDS=3 $script tests/load/site.py
scaling  $script tests/load/scaling.py
attacks  $script tests/load/attacks.py
each     $script tests/load/each_process.py
chart    $pytest_one -rs tests/deploy/test_chart.py
same     $script tests/deploy/reproducible.py
flips    NKX_STORE_FLIPS=10000 $BUILD/test/test_explorer_store
END
}

mkdir -p "$BUILD/nightly"
summary="$BUILD/nightly/summary"
: >"$summary"
SETS=${SETS:-$(all_sets | cut -d' ' -f1)}
failed=0
for name in $SETS; do
  command=$(all_sets | sed -n "s/^$name  *//p")
  log=$BUILD/nightly/$name.log
  [ -n "$command" ] || { echo "$name: FAILED, there is no such set" >>"$summary"; failed=1; continue; }
  echo "== $name: $command"
  began=$(date +%s)
  load=$(cut -d' ' -f1 /proc/loadavg) # times that are measured under load mean little
  NKX_FIGURES=$PWD/$BUILD/nightly/$name.figures
  export NKX_FIGURES
  rm -f "$NKX_FIGURES"
  if sh -c "$command" >"$log" 2>&1; then verdict=ok; else verdict=FAILED; failed=1; cat "$log"; fi
  figures=$([ ! -e "$NKX_FIGURES" ] || sed 's/$/; /' "$NKX_FIGURES" | tr -d '\n')
  echo "$name: $verdict, $(($(date +%s) - began)) s, load $load, $figures$(tail -1 "$log")" >>"$summary"
done
cat "$summary"
[ $failed = 0 ]
