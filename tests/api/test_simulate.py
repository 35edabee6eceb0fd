"""POST /api/v1/compile with "simulate": true."""
import json
import re

import pytest

from support.server import FLOAT_INPUT, Server, codes

SOFTMAX = ("import numpy as np\n\ndef softmax(x):\n    e = np.exp(x - np.max(x, axis=-1, keepdims=True))\n"
           "    return e / np.sum(e, axis=-1, keepdims=True)\n")
NISA = """func.func @twice(%a: memref<4x8xf32, #nisa.mem<shared_hbm>>) -> memref<4x8xf32, #nisa.mem<shared_hbm>> {
  %s = nisa.alloc : memref<4x8xf32, #nisa.mem<sbuf>>
  %r = nisa.alloc : memref<4x8xf32, #nisa.mem<shared_hbm>>
  nisa.dma_copy(dst<4| 8>=memref<4x8xf32, #nisa.mem<sbuf>> %s[d0, d1], src<4| 8>=memref<4x8xf32, #nisa.mem<shared_hbm>> %a[d0, d1]) engine=dma
  nisa.tensor_tensor_arith(dst<4| 8>=memref<4x8xf32, #nisa.mem<sbuf>> %s[d0, d1], lhs<4| 8>=memref<4x8xf32, #nisa.mem<sbuf>> %s[d0, d1], rhs<4| 8>=memref<4x8xf32, #nisa.mem<sbuf>> %s[d0, d1], op=add) engine=vector
  nisa.dma_copy(dst<4| 8>=memref<4x8xf32, #nisa.mem<shared_hbm>> %r[d0, d1], src<4| 8>=memref<4x8xf32, #nisa.mem<sbuf>> %s[d0, d1]) engine=dma
  nisa.release %s : memref<4x8xf32, #nisa.mem<sbuf>>
  return %r : memref<4x8xf32, #nisa.mem<shared_hbm>>
}
"""


def nisa(source=NISA, **fields):
    return {"source": source, "language": "mlir", "filename": "twice.mlir", "simulate": True, **fields}


def simulation(result):
    return result["kernels"][0]["simulation"]


def of_shape(*shape):
    return [{"name": "x", "shape": list(shape), "dtype": "float32"}]


@pytest.mark.parametrize("where", [{"simulate": True}, {"options": {"simulate": True}}])
def test_outputs_are_summarized_and_equal_numpy(server, where):
    result = server.compile(SOFTMAX, **where)
    s, (out,) = simulation(result), simulation(result)["outputs"]
    assert result["status"] == "ok" and s["status"] == "ok" and s["reference"] == "numpy"
    assert s["stage"] == result["kernels"][0]["stages"][-1]["name"] and s["instructions"] > 0 and s["dma_bytes"] >= 2 * 8 * 16 * 4
    assert out["shape"] == [8, 16] and out["dtype"] == "float32" and out["pass"] and out["max_abs_err"] < 1e-6
    assert abs(out["mean"] - 1 / 16) < 1e-6 and out["nan"] == out["inf"] == 0


def test_without_it_nothing_is_simulated(server):
    assert "simulation" not in server.compile(SOFTMAX)["kernels"][0]
    assert "simulation" not in server.compile(SOFTMAX, simulate=False)["kernels"][0]


def test_its_frame_comes_after_the_stages_and_before_the_end(server):
    body = {"source": SOFTMAX, "inputs": FLOAT_INPUT, "simulate": True}
    frames = [json.loads(l) for l in server.post(body, accept="application/x-ndjson").body.splitlines()]
    kinds = [f["frame"] for f in frames]
    assert kinds[-4:] == ["stage", "simulation", "profile", "end"] and frames[-3]["kernel"] == frames[-2]["kernel"] == 0
    assert "us" in frames[-2]["text"] and frames[-2]["profile"]["target"] == "trn2"
    events = server.post(body, accept="text/event-stream").body.decode()
    assert '"frame":"simulation"' in events


def test_every_kernel_has_its_own(server):
    source = ("import numpy as np\nfrom nkigen import trace\n"
              "@trace(input_specs=[((8, 16), 'f32')])\ndef a(x):\n    return x + 1\n"
              "@trace(input_specs=[((4, 4), 'f32')])\ndef b(x):\n    return x @ x\n")
    a, b = server.compile(source, inputs=[], simulate=True)["kernels"]
    assert a["simulation"]["outputs"][0]["shape"] == [8, 16] and b["simulation"]["matmuls"] == 1


def test_a_result_is_kept_with_it(server):
    body = {"source": SOFTMAX + "# kept\n", "inputs": FLOAT_INPUT, "simulate": True}
    first, second = (server.post(body, cache=None).json for _ in range(2))
    assert first == second
    assert server.get(f"/api/v1/results/{first['key']}").json["kernels"][0]["simulation"] == simulation(first)
    plain = server.post({**body, "simulate": False}, cache=None).json
    assert plain["key"] != first["key"] and "simulation" not in plain["kernels"][0]


def test_nisa_text_is_run_and_has_no_reference(server):
    result = server.post(nisa()).json
    s = simulation(result)
    assert result["status"] == "ok" and [x["name"] for x in result["kernels"][0]["stages"]][0] == "linalg-to-nisa"
    assert s["status"] == "ok" and "reference" not in s and -2 <= s["outputs"][0]["min"] < s["outputs"][0]["max"] <= 2


def test_watched_values_are_shown(server):
    watch = [{"line": 4, "operand": "src", "nth": 1}, {"line": 5}, {"line": 1}, {"line": 5, "operand": "no"}]
    before, after, nowhere, none = simulation(server.post(nisa(options={"watch": watch})).json)["values"]
    assert before["operand"] == "src" and before["executions"] == 1 and before["shape"] == [4, 8]
    assert len(before["slice"]) == 4 and sum(before["histogram"]["counts"]) == 32
    assert after["slice"] == [[pytest.approx(2 * v) for v in row] for row in before["slice"]] and after["max"] == 2 * before["max"]
    assert nowhere["reason"] == "there is no instruction on this line" and none["reason"] == "the instruction has no such operand"


def test_a_fault_is_reported_with_its_line(server):
    lines = NISA.split("\n")
    lines[3] = ""
    result = server.post(nisa("\n".join(lines))).json
    fault = simulation(result)["fault"]
    assert result["status"] == "error" and simulation(result)["status"] == "fault" and codes(result) == ["simulation-fault"]
    assert fault["kind"] == "unwritten-read" and fault["instruction"] == "tensor_tensor_arith" and fault["line"] == 5
    assert fault["message"].startswith("lhs: ") and fault["range"]["line"] == 5 and fault["range"]["file"] == "twice.mlir"
    assert result["diagnostics"][0]["range"]["line"] == 5


def test_a_kernel_that_stops_before_nisa_is_not_run(server):
    s = simulation(server.compile(SOFTMAX, options={"simulate": True, "stop_after": "infer-layout"}))
    assert s == {"status": "skipped", "reason": "the kernel was not taken to NISA"}


@pytest.mark.parametrize("options, field", [
    ({"simulate": 1}, "options.simulate"), ({"watch": {}}, "options.watch"), ({"watch": [{}]}, "options.watch[0].line"),
    ({"watch": [{"line": 0}]}, "options.watch[0].line"), ({"watch": [{"line": 1, "nth": 2 ** 40}]}, "options.watch[0].nth"),
    ({"watch": [{"line": 1, "operand": ""}]}, "options.watch[0].operand"), ({"watch": [{"line": 1, "x": 1}]}, "options.watch[0].x"),
    ({"watch": [{"line": 1}] * 17}, "options.watch"),
])
def test_wrong_fields_are_named(server, options, field):
    answer = server.post({"source": SOFTMAX, "inputs": FLOAT_INPUT, "options": options})
    assert answer.status in (400, 413) and field in answer.body.decode()


def test_the_profile_says_where_the_time_goes(server):
    p = server.compile(SOFTMAX, inputs=of_shape(256, 512), simulate=True)["kernels"][0]["profile"]
    lanes = {l["name"]: l for l in p["lanes"]}
    assert p["total_us"] > 0 and not p["ideal"] and {"scalar", "vector"} <= set(lanes)
    assert all(0 <= l["share"] <= 1 for l in p["lanes"]) and p["dma"]["bytes"] >= 2 * 256 * 512 * 4
    assert sum(p["path"]["waits_us"].values()) == pytest.approx(p["total_us"], abs=1e-3)
    assert {l["line"] for l in p["lines"] if l.get("file")} <= {3, 4, 5} and p["advice"] and p["memory"]["sbuf"]["peak"] > 0


def test_the_critical_path_and_what_is_alive_name_lines_of_the_last_stage(server):
    k = server.compile(SOFTMAX, inputs=of_shape(256, 512), simulate=True)["kernels"][0]
    text = k["stages"][-1]["text"].split("\n")
    parts = [p for p in k["profile"]["path"]["parts"] if "line" in p and p["what"] in ("dma_copy", "activation")]
    assert parts and all(f"nisa.{p['what']}(" in text[p["line"] - 1] for p in parts)
    alive = k["profile"]["memory"]["sbuf"]["alive"]
    assert alive and all(re.search(r"%sbuf\w* = nisa\.alloc", text[a["line"] - 1]) for a in alive)


def test_every_buffer_has_its_place_and_its_lives(server):
    k = server.compile(SOFTMAX, inputs=of_shape(4096, 512), simulate=True)["kernels"][0]  # too long to be written out without its loop
    text = k["stages"][-1]["text"].split("\n")
    memory = k["profile"]["memory"]["sbuf"]
    buffers, lives = memory["buffers"], memory["lives"]
    assert len(buffers) == len([t for t in text if re.search(r"%sbuf\w* = nisa\.alloc", t)])
    assert all(re.search(r"%sbuf\w* = nisa\.alloc", text[b["line"] - 1]) for b in buffers)
    assert memory["n_lives"] == len(lives) > len(buffers)  # rounds of loops
    assert [x[1] for x in lives] == sorted(x[1] for x in lives) and all(x[1] <= x[2] for x in lives)
    # no two buffers share a byte of a partition at a time, and the fullest moment is the peak
    spans = [(start, end, byte, byte + buffers[b]["bytes"], buffers[b]["first_partition"], buffers[b]["first_partition"] + buffers[b]["partitions"]) for b, start, end, byte in lives]
    for i, a in enumerate(spans):
        for b in spans[:i]:
            assert any(a[d + 1] <= b[d] or b[d + 1] <= a[d] for d in (0, 2, 4)), (a, b)
    at = memory["peak_us"]
    assert sum(s[3] - s[2] for s in spans if s[0] <= at < s[1]) == memory["peak"]


def test_no_two_reasons_have_the_same_words_and_place(server):
    source = "import numpy as np\n\ndef f(x):\n    return np.exp(x)\n"
    advice = server.compile(source, inputs=of_shape(130, 4500), simulate=True)["kernels"][0]["profile"]["advice"]
    told = [(a["text"], a.get("place", {}).get("line")) for a in advice]
    assert len(told) > 2 and len(set(told)) == len(told)
    assert [a["cost_us"] for a in advice] == sorted((a["cost_us"] for a in advice), reverse=True)


def test_the_timeline_is_an_artifact_that_perfetto_opens(server):
    result = server.post({"source": SOFTMAX, "inputs": FLOAT_INPUT, "options": {"simulate": True, "artifacts": True}}, cache=None).json
    assert "softmax/timeline.json" in [a["name"] for a in result["artifacts"]]
    answer = server.get(f"/api/v1/results/{result['key']}/artifacts/softmax/timeline.json")
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/json"
    events = answer.json["traceEvents"]
    assert {"scalar", "vector"} <= {e["args"]["name"] for e in events if e["ph"] == "M" and "name" in e.get("args", {})}
    assert all(e["dur"] >= 0 for e in events if e["ph"] == "X")


def test_a_target_says_how_far_its_simulated_times_are_from_measured_ones(server):
    errors = {t["name"]: t["simulated_time_error"] for t in server.get("/api/v1/targets").json["targets"]}
    for name in ("trn1", "trn2"):
        assert errors[name]["kernels"] > 10 and 0 < errors[name]["median"] < errors[name]["worst"] < 1
    assert errors["trn3"]["kernels"] == 0 and errors["trn3"]["median"] is errors["trn3"]["worst"] is None
    assert len(errors["trn3"]["uncalibrated"]) > len(errors["trn2"]["uncalibrated"]) > 0
    shown = {t: server.post({"source": SOFTMAX, "inputs": FLOAT_INPUT, "simulate": True, "target": t},
                            accept="application/x-ndjson").body.decode() for t in ("trn2", "trn3")}
    assert f"{errors['trn2']['median'] * 100:.0f} % at the median" in shown["trn2"] and "no kernel was measured on trn3" in shown["trn3"]


def unpack(columns):
    """The executions of a timeline in columns (sim/report.h)."""
    for page in columns["pages"]:
        end, instr = page["from_ps"], 0
        for step, gap, length, tag in zip(page["instr"], page["gap"], page["length"], page["tag"], strict=True):
            instr, start = instr + step, end + gap
            end = start + columns["lengths"][length]
            yield columns["lanes"][page["lane"]]["name"], start, end - start, instr, columns["tags"][tag]


def test_the_executions_in_columns_are_those_of_the_trace(server):
    product = "import numpy as np\n\ndef product(x):\n    return np.exp(x) @ x\n"
    result = server.post({"source": product, "inputs": of_shape(512, 512), "options": {"simulate": True, "artifacts": True}},
                         cache=None).json
    columns, trace = (server.get(f"/api/v1/results/{result['key']}/artifacts/product/{name}.json")
                      for name in ("executions", "timeline"))
    names = {e["tid"]: e["args"]["name"] for e in trace.json["traceEvents"] if e["ph"] == "M" and e["name"] == "thread_name"}
    events = [e for e in trace.json["traceEvents"] if e["ph"] == "X"]
    whole = sorted((names[e["tid"]], round(e["ts"] * 1e6), round(e["dur"] * 1e6), e["args"].get("instruction", -1), e["name"],
                    e["args"]["waited for"], e["args"].get("half clock", False)) for e in events)
    columns = columns.json
    unpacked = list(unpack(columns))
    assert sorted((*u[:4], u[4]["name"], u[4]["reason"], u[4].get("half", False)) for u in unpacked) == whole
    assert columns["n"] == len(whole) and columns["total_ps"] == round(result["kernels"][0]["profile"]["total_us"] * 1e6)
    assert any(u[4].get("critical") for u in unpacked)
    text = result["kernels"][0]["stages"][-1]["text"].split("\n")
    assert all(f"nisa.{i['name']}(" in text[i["line"] - 1] for i in columns["instructions"])
    assert [l["name"] for l in columns["lanes"]] == [l["name"] for l in result["kernels"][0]["profile"]["lanes"]]
    assert len(json.dumps(columns["pages"], separators=(",", ":"))) <= 16 * columns["n"] + 80 * len(columns["pages"])
    for lane, busy in zip(result["kernels"][0]["profile"]["lanes"], columns["busy"], strict=True):
        assert len(busy) == 256 and abs(sum(busy) / 25600 - lane["share"]) < 0.01


def test_two_runs_are_compared_by_their_keys(server):
    body = {"source": SOFTMAX, "inputs": of_shape(128, 256), "simulate": True}
    a, b = (server.post({**body, "target": t}, cache=None).json for t in ("trn2", "trn1"))
    answer = server.get(f"/api/v1/results/{a['key']}/comparison?with={b['key']}")
    (k,) = answer.json["kernels"]
    assert k["a_us"] == a["kernels"][0]["profile"]["total_us"] and k["b_us"] == b["kernels"][0]["profile"]["total_us"]
    assert k["ratio"] == pytest.approx(k["b_us"] / k["a_us"])
    assert {l["name"] for l in k["lanes"]} >= {l["name"] for r in (a, b) for l in r["kernels"][0]["profile"]["lanes"]}
    assert k["outputs"][0]["a"] == simulation(a)["outputs"][0] and k["outputs"][0]["b"] == simulation(b)["outputs"][0]
    assert sum(w["a_us"] for w in k["waits"]) == pytest.approx(k["a_us"], abs=1e-3)
    changes = [abs(l["a_us"] - l["b_us"]) for l in k["lines"]]
    assert changes == sorted(changes, reverse=True)


@pytest.mark.parametrize("query, status", [("", 400), ("?with=x", 400), ("?with=" + "0" * 64, 404)])
def test_a_comparison_needs_two_results(server, query, status):
    key = server.post({"source": SOFTMAX, "inputs": FLOAT_INPUT, "simulate": True}, cache=None).json["key"]
    assert server.get(f"/api/v1/results/{key}/comparison{query}").status == status


def test_results_without_a_simulation_are_not_compared(server):
    key = server.post({"source": SOFTMAX, "inputs": FLOAT_INPUT}, cache=None).json["key"]
    assert server.get(f"/api/v1/results/{key}/comparison?with={key}").status == 404


# ---- hostile sizes ---------------------------------------------------------------------------------------------------

HUGE = "import numpy as np\ndef k(x):\n    return x + 1\n"


@pytest.mark.parametrize("shape", [(16384, 16384), (1 << 20, 1 << 14)])
def test_arrays_that_are_too_large_keep_the_stages_and_name_the_limit(server, shape):
    result = server.compile(HUGE, inputs=of_shape(*shape), simulate=True)
    s = simulation(result)
    assert s["status"] == "limit" and "MiB" in s["reason"]
    assert "memory-limit" in codes(result) and result["kernels"][0]["stages"][-1]["dialect"] == "nisa"


def big_nisa(trips, rows):
    memory = f"memref<{rows}x16384xf32, #nisa.mem<hbm>>"
    return f"""func.func @k(%a: memref<4x8xf32, #nisa.mem<shared_hbm>>) -> memref<4x8xf32, #nisa.mem<shared_hbm>> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant {trips} : index
  %big = nisa.alloc : {memory}
  %s = nisa.alloc : memref<128x4096xf32, #nisa.mem<sbuf>>
  %f = arith.constant 1.0 : f32
  scf.for %i = %c0 to %n step %c1 {{
    nisa.memset(dst<128| 4096>=memref<128x4096xf32, #nisa.mem<sbuf>> %s[d0, d1], value=f32 %f) engine=vector
  }}
  nisa.release %s : memref<128x4096xf32, #nisa.mem<sbuf>>
  return %a : memref<4x8xf32, #nisa.mem<shared_hbm>>
}}
"""


def test_memory_beyond_the_limit_stops_the_run(server):
    result = server.post(nisa(big_nisa(1, 1 << 16))).json  # 4 GiB
    s = simulation(result)
    assert s["status"] == "limit" and s["fault"]["kind"] == "memory-limit" and "memory-limit" in codes(result)
    assert result["kernels"][0]["stages"] and result["status"] == "ok"


def test_time_beyond_the_limit_stops_the_run():
    with Server("--workers", "1", "--job-cpu-s", "4", "--job-timeout-ms", "60000") as server:
        result = server.post(nisa(big_nisa(1 << 40, 1))).json
        s = simulation(result)
        assert s["status"] == "limit" and s["fault"]["kind"] == "time-limit" and "time-limit" in codes(result)
        assert result["kernels"][0]["stages"] and result["status"] == "ok"
        assert server.compile(SOFTMAX, simulate=True)["status"] == "ok"
