/* vendor_options: the options of the commands that call the vendor's compiler. */
#ifndef DRIVER_VENDOR_OPTIONS_H
#define DRIVER_VENDOR_OPTIONS_H

#include "driver/terminal.h"
#include "neff/vendor.h"

enum { VENDOR_EXTRA_MAX = 64 };

struct vendor_command {
  struct vendor_options options;
  struct job_vendor job;
  const char *extra[VENDOR_EXTRA_MAX];
  bool is_quiet;
};

/* Options, for getopt_long: their values are above those of run_device.h. */
enum { VENDOR_PROGRAM = 512, VENDOR_LNC, VENDOR_OPTION, VENDOR_TIME, VENDOR_MEMORY, VENDOR_CACHE, VENDOR_CACHE_SIZE };
#define VENDOR_OPTIONS \
  {"neuronx-cc", required_argument, NULL, VENDOR_PROGRAM}, {"lnc", required_argument, NULL, VENDOR_LNC}, \
      {"cc-option", required_argument, NULL, VENDOR_OPTION}, \
      {"cc-cache-mib", required_argument, NULL, VENDOR_CACHE_SIZE}, {"cc-time", required_argument, NULL, VENDOR_TIME}, \
      {"cc-memory", required_argument, NULL, VENDOR_MEMORY}, { \
    "cc-cache", required_argument, NULL, VENDOR_CACHE \
  }
#define VENDOR_HELP \
  "  --neuronx-cc FILE          the vendor's compiler ($NKX_NEURONX_CC, neuronx-cc in PATH)\n" \
  "  --lnc 1|2                  physical cores of a logical one (1)\n" \
  "  --cc-option=OPTION         passed on to it, such as --cc-option=--optlevel=3; repeatable\n" \
  "  --cc-time S                it is stopped after so many seconds (600)\n" \
  "  --cc-memory MIB            its limit of memory, of all its processes together (16384)\n" \
  "  --cc-cache DIR|none        where what it made is kept ($XDG_CACHE_HOME/nkx/neuronx-cc, " \
  "~/.cache/nkx/neuronx-cc)\n" \
  "  --cc-cache-mib N           what is kept there at most: what was used last (4096)\n"

/* Sets the defaults, with the cache's directory in the arena. */
void vendor_command_init(struct vendor_command *v, struct arena *a);
/* Reads an option; false if c is not one of these. */
bool vendor_command_option(struct vendor_command *v, int c, const char *value, struct error *err, enum status *st);
/* Sets t->job.vendor, after the options have been read: the log goes to standard error. */
MUST_USE enum status vendor_command_use(struct vendor_command *v, struct terminal *t);

#endif
