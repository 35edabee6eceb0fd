#include "sim/fault.h"

#include <assert.h>

const char *sim_fault_name(enum sim_fault_kind k) {
  static const char *const names[] = {
      [SIM_FAULT_NONE] = "none",
      [SIM_FAULT_UNWRITTEN] = "unwritten-read",
      [SIM_FAULT_BOUNDS] = "out-of-bounds",
      [SIM_FAULT_RELEASED] = "use-after-release",
      [SIM_FAULT_ACCUMULATION] = "bad-accumulation",
      [SIM_FAULT_RESULT] = "unwritten-result",
      [SIM_FAULT_MEMORY] = "memory-limit",
      [SIM_FAULT_TIME] = "time-limit",
      [SIM_FAULT_INSTRUCTION] = "bad-instruction",
      [SIM_FAULT_DEADLOCK] = "deadlock",
      [SIM_FAULT_RACE] = "race",
  };
  assert(k >= 0 && k < SIM_FAULT_KINDS);
  return names[k];
}
