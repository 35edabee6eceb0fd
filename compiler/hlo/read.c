/* read: what both readers share: recognising text, and naming the module's outputs. */
#include "hlo/read.h"

#include <assert.h>
#include <string.h>

#include "hlo/read_text.h"

bool hlo_is_text(const char *data, size_t len) {
  for (size_t k = 0; k < len && k < 64; k++)
    if ((unsigned char)data[k] < 0x20 && !strchr("\t\n\r", data[k]))
      return false;
  return !memchr(data, 0, len);
}

bool hlo_read_set_outputs(struct hlo_module *m) {
  assert(m->entry->root);
  const struct hlo_shape *s = &m->entry->root->shape;
  m->n_outputs = s->dtype == DT_TUPLE ? s->n_elems : 1;
  m->output_names = arena_new_array(m->arena, const char *, (size_t)m->n_outputs);
  for (int k = 0; k < m->n_outputs; k++) {
    if (s->dtype == DT_TUPLE && s->elems[k].dtype == DT_TUPLE)
      return false;
    m->output_names[k] = arena_printf(m->arena, "output%d", k);
  }
  return true;
}

void hlo_read_add_alias(struct hlo_module *m, int output, int param) {
  assert(param >= 0 && param < m->entry->n_params);
  const char *name = m->entry->params[param]->name;
  const size_t n = strlen(name), k = sizeof HLO_ALIAS_SUFFIX - 1;
  if (n > k && !strcmp(name + n - k, HLO_ALIAS_SUFFIX))
    name = arena_strndup(m->arena, name, n - k);
  m->aliases[m->n_aliases++] = (struct hlo_alias){output, param, name, true};
  if (output >= 0 && output < m->n_outputs) /* the verifier refuses the others */
    m->output_names[output] = name;
}
