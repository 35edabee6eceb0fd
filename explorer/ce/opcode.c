/* GET /api/asm/nisa/OPCODE: describes an instruction, from the compiler's own table. */
#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "ce/internal.h"

enum { TEXT_MAX = 4 << 10, OPCODE_MAX = 80 };

struct instruction {
  const char *name, *engines, *operands; /* as they are written in ops.def */
};

/* The table's columns as text: ENGINES(VECTOR, GPSIMD) becomes "VECTOR, GPSIMD". */
#define ENGINES(...) #__VA_ARGS__
#define OPERANDS(...) #__VA_ARGS__
static const struct instruction instructions[] = {
#define NISA_OP(e, name, engines, operands) {name, engines, operands},
#include "nisa/ops.def"
#undef NISA_OP
};
#undef ENGINES
#undef OPERANDS

static bool is_same(const char *name, const char *opcode) {
  if (!strncasecmp(opcode, "nisa.", 5))
    opcode += 5;
  return !strcasecmp(name, opcode);
}

static const struct instruction *find(const char *opcode) {
  for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++)
    if (is_same(instructions[i].name, opcode))
      return &instructions[i];
  return NULL;
}

/* Appends "runs on vector or gpsimd", or that no engine runs it. */
static void put_engines(struct buf *b, const char *engines) {
  if (!strcmp(engines, "NONE")) {
    buf_puts(b, "runs on no engine: it only reserves or frees memory");
    return;
  }
  buf_puts(b, "runs on ");
  for (const char *p = engines; *p; p++) {
    if (*p == ',')
      buf_puts(b, " or");
    else
      buf_putc(b, (char)tolower((unsigned char)*p));
  }
}

/* Appends the operands: W("dst"), OPT(R("x")) becomes "; operands: dst (written), x (read, optional)". */
static void put_operands(struct buf *b, const char *operands) {
  static const struct {
    char mark;
    const char *what;
  } kinds[] = {{'W', "written"},  {'R', "read"},   {'U', "read and written"},
               {'X', "a buffer"}, {'S', "scalar"}, {'E', "read, or a scalar"}};
  bool is_optional = false;
  const char *before = "; operands: ";
  for (const char *p = operands; *p; p++) {
    const char *quote;
    if (!strncmp(p, "OPT(", 4)) {
      is_optional = true;
      p += 3;
      continue;
    }
    if (p[1] != '(' || p[2] != '"' || !(quote = strchr(p + 3, '"')))
      continue;
    buf_printf(b, "%s%.*s", before, (int)(quote - p - 3), p + 3);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
      if (kinds[i].mark == *p)
        buf_printf(b, " (%s%s)", kinds[i].what, is_optional ? ", optional" : "");
    is_optional = false;
    before = ", ";
    p = quote;
  }
}

/* Answers {"error": "…"}, also to clients that asked for text. */
static enum MHD_Result unknown(struct request *rq, const char *what, const char *name, size_t len, bool in_capitals) {
  char text[OPCODE_MAX + 1];
  size_t n = len < OPCODE_MAX ? len : OPCODE_MAX;
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)name[i];
    text[i] = (char)(!isprint(c) ? '?' : in_capitals ? toupper(c) : c);
  }
  text[n] = 0;
  return ce_send(rq, MHD_HTTP_NOT_FOUND, json_pack("{s:o}", "error", json_sprintf("%s '%s'", what, text)), CE_NO_STORE);
}

enum MHD_Result ce_opcode(struct request *rq) {
  size_t n = strcspn(rq->rest, "/");
  const char *opcode = rq->rest + n + (rq->rest[n] == '/');
  struct buf b;
  if (n != 4 || strncmp(rq->rest, "nisa", 4) != 0)
    return unknown(rq, "No documentation for", rq->rest, n, false);
  const struct instruction *in = find(opcode);
  if (!in)
    return unknown(rq, "Unknown opcode", opcode, strlen(opcode), true);
  buf_init(&b, TEXT_MAX);
  buf_printf(&b, "nisa.%s ", in->name);
  put_engines(&b, in->engines);
  put_operands(&b, in->operands);
  buf_putc(&b, '.');
  if (!ce_wants_json(rq))
    return ce_send_text(rq, &b, CE_LISTED);
  json_t *html = json_sprintf("<p>%s</p>", buf_text(&b)); /* made from the table, so there is nothing to escape */
  json_t *o = json_pack("{s:s,s:o,s:s}", "tooltip", buf_text(&b), "html", html, "url",
                        "https://awsdocs-neuron.readthedocs-hosted.com/");
  buf_clear(&b);
  return ce_send(rq, MHD_HTTP_OK, o, CE_LISTED);
}
