/* memory: the memory spaces of a NeuronCore.  The values are those of the knob mem_space and of the nkipy dialect. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stdbool.h>

enum mem_space {
  MEM_NONE,
  MEM_HBM,
  MEM_PSUM,
  MEM_SBUF,
  MEM_SHARED_HBM, /* HBM that the host sees: arguments and results */
  MEM_CONSTANT,   /* nkigen's name for a buffer filled with one number */
};

static inline bool mem_is_on_chip(enum mem_space s) {
  return s == MEM_PSUM || s == MEM_SBUF;
}
static inline bool mem_is_dram(enum mem_space s) {
  return s == MEM_HBM || s == MEM_SHARED_HBM;
}

#endif
