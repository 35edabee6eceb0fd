#include "base/log.h"
#include "pool/internal.h"

/* A lost zygote is noticed where its messages are read. */
static void tell(struct zygote *z, const struct ctl_msg *m) {
  struct error err;
  if (z->fd >= 0 && wire_ctl_send(z->fd, m, NULL, 0, &err))
    log_debug("zygote", "%s", err.text);
}

void zygote_signal(struct zygote *z, uint32_t zygote_id, int sig) {
  tell(z, &(const struct ctl_msg){.kind = CTL_SIGNAL, .id = zygote_id, .value = sig});
}

void zygote_nice(struct zygote *z, uint32_t zygote_id, int nice) {
  tell(z, &(const struct ctl_msg){.kind = CTL_NICE, .id = zygote_id, .value = nice});
}
