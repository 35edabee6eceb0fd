/* report_trace: a timeline in the form of Chrome's trace events, which Perfetto opens.
 *
 * Process 1 has a thread per engine and per queue; process 2 has the counters.  Transfers of one queue overlap, so each is
 * on the first of the queue's tracks that is free.  Times are microseconds. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/json.h"
#include "sim/report.h"
#include "sim/report_internal.h"

enum { TRACKS = 16, PROGRAM = 1, COUNTERS = 2 };

static void put_us(struct buf *b, const char *key, int64_t ps) {
  json_put_key(b, key);
  buf_printf(b, "%" PRId64 ".%06" PRId64, ps / 1000000, ps % 1000000);
}

static void begin(struct buf *b, const char *phase, int process, int thread) {
  json_put_comma(b);
  buf_puts(b, "\n{");
  json_put_field_str(b, "ph", phase);
  json_put_field_int(b, "pid", process);
  json_put_field_int(b, "tid", thread);
}

static void put_name(struct buf *b, const char *what, int process, int thread, const char *name, int order) {
  begin(b, "M", process, thread);
  json_put_field_str(b, "name", what);
  buf_puts(b, ",\"args\":{");
  json_put_field_str(b, "name", name);
  buf_puts(b, "}}");
  if (thread < 0)
    return;
  begin(b, "M", process, thread);
  json_put_field_str(b, "name", "thread_sort_index");
  buf_printf(b, ",\"args\":{\"sort_index\":%d}}", order);
}

static int thread_of(int lane, int track) {
  return 1 + lane * TRACKS + track;
}

static void put_args(const struct sim_timeline *t, const struct sim_exec *x, struct buf *b) {
  json_put_key(b, "args");
  buf_putc(b, '{');
  json_put_field_str(b, "waited for", sim_reason_name((enum sim_reason)x->reason));
  if (x->instr >= 0) {
    const struct sim_instr *i = &t->program->instrs[x->instr];
    json_put_field_int(b, "instruction", x->instr);
    if (i->loc && i->loc->range.line) {
      json_put_field_str(b, "file", i->loc->range.file ? i->loc->range.file : "");
      json_put_field_int(b, "line", i->loc->range.line);
    }
    if (x->kind == SIM_EXEC_TRANSFER) {
      json_put_field_int(b, "bytes", t->costs[x->instr].dma.bytes);
      json_put_field_int(b, "bytes per descriptor", t->costs[x->instr].dma.descriptor_bytes);
    }
    if (x->is_half_clock)
      json_put_field_bool(b, "half clock", 1);
    if (t->costs[x->instr].confidence == SIM_CONFIDENCE_L)
      json_put_field_bool(b, "low confidence", 1);
  }
  buf_putc(b, '}');
}

static void put_exec(const struct sim_timeline *t, const struct sim_exec *x, int track, struct buf *b) {
  begin(b, "X", PROGRAM, thread_of(x->lane, track));
  json_put_field_str(b, "name", sim_exec_name(t, x));
  json_put_field_str(b, "cat", nisa_engine_name(t->lanes[x->lane].engine));
  put_us(b, "ts", x->start);
  put_us(b, "dur", x->free - x->start);
  put_args(t, x, b);
  buf_putc(b, '}');
}

static int free_track(int64_t *busy, int64_t from) {
  for (int k = 0; k < TRACKS; k++)
    if (busy[k] <= from)
      return k;
  return TRACKS - 1;
}

static void put_execs(const struct sim_timeline *t, struct buf *b) {
  int64_t *busy = calloc((size_t)t->n_lanes * TRACKS + 1, sizeof *busy);
  int *tracks = calloc((size_t)t->n_lanes + 1, sizeof *tracks);
  if (!busy || !tracks)
    arena_oom(sizeof *busy);
  for (int k = 0; k < t->n && !buf_status(b); k++) {
    const struct sim_exec *x = &t->execs[k];
    const int track = x->kind == SIM_EXEC_TRANSFER ? free_track(&busy[x->lane * TRACKS], x->start) : 0;
    busy[x->lane * TRACKS + track] = x->free;
    tracks[x->lane] = tracks[x->lane] > track + 1 ? tracks[x->lane] : track + 1;
    put_exec(t, x, track, b);
  }
  for (int k = 0; k < t->n_lanes; k++)
    for (int i = 0; i < tracks[k]; i++)
      put_name(b, "thread_name", PROGRAM, thread_of(k, i), t->lanes[k].name, thread_of(k, i));
  free(busy);
  free(tracks);
}

/* Arrows from each execution of the critical path to the next. */
static void put_arrows(const struct sim_profile *p, struct buf *b) {
  const struct sim_timeline *t = p->timeline;
  int last = -1;
  for (int k = 0; k < p->n_path && !buf_status(b); k++) {
    const int exec = p->path[k].exec;
    if (exec == last)
      continue;
    if (last >= 0 && t->execs[last].kind != SIM_EXEC_TRANSFER && t->execs[exec].kind != SIM_EXEC_TRANSFER &&
        t->execs[last].lane != t->execs[exec].lane)
      for (int end = 0; end < 2; end++) {
        const struct sim_exec *x = &t->execs[end ? exec : last];
        begin(b, end ? "f" : "s", PROGRAM, thread_of(x->lane, 0));
        json_put_field_str(b, "name", "critical path");
        json_put_field_str(b, "cat", "critical");
        json_put_field_int(b, "id", k);
        if (end)
          json_put_field_str(b, "bp", "e");
        put_us(b, "ts", x->start);
        buf_putc(b, '}');
      }
    last = exec;
  }
}

static void put_counter(const struct sim_occupancy *o, const char *name, struct buf *b) {
  for (int k = 0; k < o->n_points; k++) {
    begin(b, "C", COUNTERS, 0);
    json_put_field_str(b, "name", name);
    put_us(b, "ts", o->points[k].ps);
    buf_printf(b, ",\"args\":{\"bytes\":%" PRId64 "}}", o->points[k].bytes);
  }
}

enum status sim_report_trace(const struct sim_profile *p, struct buf *b) {
  buf_puts(b, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"target\":");
  json_put_cstr(b, target_name(p->timeline->target));
  buf_puts(b, "},\"traceEvents\":[");
  put_name(b, "process_name", PROGRAM, -1, "NeuronCore (simulated)", 0);
  put_name(b, "process_name", COUNTERS, -1, "memory", 0);
  put_execs(p->timeline, b);
  put_arrows(p, b);
  for (int core = 0; core < p->timeline->program->n_cores; core++) {
    put_counter(&p->sbuf[core], core ? "SBUF bytes of a partition, core 1" : "SBUF bytes of a partition", b);
    put_counter(&p->psum[core], core ? "PSUM bytes of a partition, core 1" : "PSUM bytes of a partition", b);
  }
  buf_puts(b, "\n]}\n");
  return buf_status(b);
}
