/* report_text: a profile for a terminal. */
#include <inttypes.h>

#include "sim/accuracy.h"
#include "sim/report.h"

enum { BAR = 40, ADVICE_SHOWN = 8 };

static void put_bar(struct buf *b, const char *name, int64_t busy, int64_t total) {
  const int n = total ? (int)(busy * BAR / total) : 0;
  buf_printf(b, "  %-18s ", name);
  for (int k = 0; k < BAR; k++)
    buf_puts(b, k < n ? "█" : "·");
  buf_printf(b, " %5.1f %% %12.2f us\n", total ? (double)busy * 100 / (double)total : 0.0, (double)busy / 1e6);
}

static void put_lanes(const struct sim_profile *p, struct buf *b) {
  const struct sim_timeline *t = p->timeline;
  for (int k = 0; k < t->n_lanes; k++)
    if (p->lanes[k].busy_ps)
      put_bar(b, t->lanes[k].name, p->lanes[k].busy_ps, t->total_ps);
  put_bar(b, "DMA engines", p->dma_engine_ps / sim_dma_engines(t), t->total_ps);
}

static void put_advice(const struct sim_profile *p, struct buf *b) {
  for (int k = 0; k < p->n_advice && k < ADVICE_SHOWN; k++) {
    const struct sim_advice *x = &p->advice[k];
    buf_printf(b, "  %8.2f us  ", (double)x->cost_ps / 1e6);
    if (x->loc && x->loc->range.line)
      buf_printf(b, "%s:%d: ", x->loc->range.file ? x->loc->range.file : "", x->loc->range.line);
    buf_puts(b, x->text);
    buf_puts(b, x->confidence == SIM_CONFIDENCE_L ? " (low confidence)\n" : "\n");
  }
}

/* The peak of the core that uses more. */
static int64_t most(const struct sim_occupancy *of_cores, const struct sim_timeline *t) {
  int64_t peak = 0;
  for (int core = 0; core < t->program->n_cores; core++)
    peak = of_cores[core].peak_bytes > peak ? of_cores[core].peak_bytes : peak;
  return peak;
}

enum status sim_report_text(const struct sim_profile *p, struct buf *b) {
  const struct sim_timeline *t = p->timeline;
  buf_printf(b, "%s: %.2f us%s, %s-bound; a launch adds about %.1f us\n", target_name(t->target),
             (double)t->total_ps / 1e6, t->is_ideal ? " with an ideal schedule" : "", p->bound,
             (double)sim_constant_ps(SIM_LAUNCH, t->target) / 1e6);
  if (t->n_assumed)
    buf_printf(b, "the outcome of %d branches on data is assumed\n", t->n_assumed);
  put_lanes(p, b);
  buf_printf(b,
             "  %.1f GB/s by DMA of %" PRId64 "; %.2f TFLOP/s on Tensor of %.1f; SBUF %" PRId64 " of %" PRId64
             " KiB, PSUM %" PRId64 " of %" PRId64 " KiB a partition\n",
             t->total_ps ? (double)p->dma_bytes * 1e3 / (double)t->total_ps : 0.0, sim_peak_gb_s(t),
             t->total_ps ? (double)p->matmul_operations / (double)t->total_ps : 0.0, (double)p->peak_operations / 1e12,
             most(p->sbuf, t) / 1024, p->sbuf[0].capacity / 1024, most(p->psum, t) / 1024, p->psum[0].capacity / 1024);
  buf_puts(b, "  ");
  sim_accuracy_text(t->target, b);
  buf_putc(b, '\n');
  put_advice(p, b);
  return buf_status(b);
}
