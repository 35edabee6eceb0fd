/* GET /api/v1/instructions: what each instruction and each operation of a stage does, for cards on the page; and
 * GET /api/v1/nki: the calls of NKI.
 *
 * driver/cards.h and driver/nki_help.h know instructions and calls; the operations of the other dialects have a sentence
 * each, in operations.json.  An answer is made at its first request.
 */
#include <pthread.h>

#include "api/info.h"
#include "driver/cards.h"
#include "driver/nki_help.h"

enum { CARDS_MAX = 1 << 20 };

static const char operations[] =
#include "operations.inc"
    ;

static struct buf instructions, nki;

static void make_instructions(void) {
  buf_init(&instructions, CARDS_MAX);
  buf_puts(&instructions, "{\"instructions\":");
  cards_put_instructions(&instructions);
  buf_puts(&instructions, ",\"operations\":");
  buf_append(&instructions, operations, sizeof operations - 1);
  buf_puts(&instructions, "}\n");
}

static void make_nki(void) {
  buf_init(&nki, CARDS_MAX);
  nki_help_put(&nki);
  buf_putc(&nki, '\n');
}

static enum MHD_Result answer(struct request *rq, const struct buf *text) {
  if (buf_status(text))
    return http_problem(rq, PB_INTERNAL, NULL, NULL);
  return http_json(rq, MHD_HTTP_OK, text->data, text->len, true);
}

enum MHD_Result api_instructions(struct request *rq) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_instructions);
  return answer(rq, &instructions);
}

enum MHD_Result api_nki(struct request *rq) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_nki);
  return answer(rq, &nki);
}
