/* print: see the header.
 *
 * NISA operations are written here, and MLIR prints the others: short operations stand in for ours meanwhile, because MLIR's own
 * form of them would take most of the time and is not needed.  An operation takes one line in either form, but the terminators of
 * streams have no line in the result.  Names come from locations: MLIR uses them as hints (name-loc-as-prefix) and makes
 * them unique.  Afterwards the module gets its operations and locations back.
 */
#include "nisa/print.h"

#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"

#include "base/array.h"
#include "ir/lines.h"
#include "nisa/cores.h"
#include "nisa/print_op.h"

/* ---- the module's operations and their locations ---------------------------------------------------------------- */

struct locations {
  MlirLocation *v;
  int n, cap;
};

/* An operation that is written here. */
struct own {
  MlirOperation stand_in; /* in its place while MLIR prints; null: MLIR prints the operation itself */
  size_t at, len;         /* its line in `text`, without indentation */
};

struct listing {
  struct arena *a;
  struct ir_ops ops; /* pre-order */
  struct {
    MlirValue *v;
    int n, cap;
  } args;                          /* of blocks */
  struct locations locs, arg_locs; /* their own locations, before names were given */
  struct own *own;                 /* of each operation */
  struct buf *text;
};

static void list_arg(struct listing *l, MlirValue v) {
  array_push(l->a, &l->args, v);
  array_push(l->a, &l->arg_locs, mlirValueGetLocation(v));
}

static MlirWalkResult list_op(MlirOperation op, void *user) {
  struct listing *l = user;
  array_push(l->a, &l->ops, op);
  array_push(l->a, &l->locs, mlirOperationGetLocation(op));
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
    for (MlirBlock b = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r)); !mlirBlockIsNull(b);
         b = mlirBlockGetNextInRegion(b))
      for (intptr_t k = 0; k < mlirBlockGetNumArguments(b); k++)
        list_arg(l, mlirBlockGetArgument(b, k));
  return MlirWalkResultAdvance;
}

static void forget_locations(const struct listing *l, MlirLocation unknown) {
  for (int k = 0; k < l->ops.n; k++)
    mlirOperationSetLocation(l->ops.v[k], unknown);
  for (int k = 0; k < l->args.n; k++)
    mlirBlockArgumentSetLocation(l->args.v[k], unknown);
}

static void restore_locations(const struct listing *l) {
  assert(l->locs.n == l->ops.n && l->arg_locs.n == l->args.n);
  for (int k = 0; k < l->ops.n; k++)
    mlirOperationSetLocation(l->ops.v[k], l->locs.v[k]);
  for (int k = 0; k < l->args.n; k++)
    mlirBlockArgumentSetLocation(l->args.v[k], l->arg_locs.v[k]);
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

static MlirLocation named(MlirContext ctx, const char *name) {
  return mlirLocationNameGet(ctx, ir_str(name), mlirLocationUnknownGet(ctx));
}

static const char *loop_name(MlirOperation loop) {
  static const char *const names[] = {"i", "j", "k", "l", "m", "n"};
  size_t depth = 0;
  for (MlirOperation up = mlirOperationGetParentOperation(loop); !mlirOperationIsNull(up);
       up = mlirOperationGetParentOperation(up))
    depth += ir_is(up, "scf.for");
  return depth < sizeof names / sizeof *names ? names[depth] : "i";
}

static const char *alloc_name(MlirType t) {
  static const char *const names[] = {"mem", "hbm", "psum", "sbuf", "hbm"};
  return names[nisa_type_space(t)];
}

static void give_names(MlirContext ctx, const struct listing *l) {
  for (int k = 0; k < l->ops.n; k++) {
    MlirOperation op = l->ops.v[k];
    if (ir_is(op, "nisa.alloc") || ir_is(op, "nisa.rotate"))
      mlirOperationSetLocation(op, named(ctx, alloc_name(mlirValueGetType(mlirOperationGetResult(op, 0)))));
    else if (ir_is(op, "nisa.register_load"))
      mlirOperationSetLocation(op, named(ctx, "reg"));
    else if (ir_is(op, "scf.for")) {
      MlirBlock body = ir_body(op);
      mlirBlockArgumentSetLocation(mlirBlockGetArgument(body, 0), named(ctx, loop_name(op)));
    }
  }
}

/* ---- the text --------------------------------------------------------------------------------------------------- */

static void append(MlirStringRef s, void *user) {
  buf_append(user, s.data, s.length);
}

static MlirAsmState names_of(MlirOperation module, int64_t elide_above) {
  MlirOpPrintingFlags flags = mlirOpPrintingFlagsCreate();
  mlirOpPrintingFlagsAssumeVerified(flags);
  mlirOpPrintingFlagsUseLocalScope(
      flags); /* no aliases: they are printed before the module, and would shift the lines */
  mlirOpPrintingFlagsPrintNameLocAsPrefix(flags);
  if (elide_above)
    mlirOpPrintingFlagsElideLargeElementsAttrs(flags, elide_above);
  MlirAsmState names = mlirAsmStateCreateForOperation(module, flags);
  mlirOpPrintingFlagsDestroy(flags);
  return names;
}

/* Appends [s, end), with  #nisa.mem<"sbuf">  as  #nisa.mem<sbuf>. */
static void put_unquoted(struct buf *out, const char *s, const char *end) {
  const char *from = s;

  while (s < end) {
    size_t n = *s == '#' ? nisa_text_keyword_attr(s, end) : 0;
    if (n && s + n < end && s[n] == '"') {
      const char *word = s + n + 1, *close = memchr(word, '"', (size_t)(end - word));
      buf_append(out, from, (size_t)(s + n - from));
      if (!close)
        close = word;
      buf_append(out, word, (size_t)(close - word));
      from = s = close + 1;
    } else if (*s == '"') {
      for (s++; s < end && *s != '"'; s++)
        s += *s == '\\';
      s += s < end;
    } else {
      s++;
    }
  }
  buf_append(out, from, (size_t)(end - from));
}

/* ---- streams ---------------------------------------------------------------------------------------------------- */

/* The lines of a region of a stream or a core that change:
 *
 *     scf.execute_region {              nisa.queue qSyncIn on sync {
 *       …                         ==>     …
 *       scf.yield
 *     } {nisa.on = "sync", …}           }                                  */
struct frame {
  MlirOperation region;
  int first, yield; /* lines, from 1; the last line comes after yield */
};

static bool is_word(const char *s) {
  return nisa_text_is_word(s, strlen(s));
}

/* True if the readable form can express the region. */
static bool find_frame(const struct listing *l, const int *lines, int k, struct frame *out) {
  MlirOperation op = l->ops.v[k];
  const char *on = nisa_text_attr(op, "nisa.on");
  const bool is_queue = nisa_stream_is_queue(op), is_core = nisa_is_core(op);
  int end = k + 1; /* the region's terminator comes last */

  if ((!nisa_is_stream(op) && !is_core) || mlirOperationGetNumResults(op) ||
      mlirOperationGetNumAttributes(op) != (is_queue ? 2 : 1))
    return false;
  if ((!is_core && !is_word(nisa_stream_name(op))) || (is_queue && !is_word(on)) ||
      !mlirBlockIsNull(mlirBlockGetNextInRegion(ir_body(op))))
    return false;
  MlirOperation yield = mlirBlockGetTerminator(ir_body(op));
  while (end < l->ops.n && !mlirOperationEqual(l->ops.v[end], yield))
    end++;
  *out = (struct frame){op, lines[k], end < l->ops.n ? lines[end] : 0};
  return out->first && out->yield && ir_is(yield, "scf.yield");
}

/* The streams and cores of the module, in the order of their first lines; streams may be inside a core, nothing else is
 * inside another. */
struct frames {
  struct frame *v;
  int n, cap;
};

static struct frames find_frames(const struct listing *l, const int *lines) {
  struct frames f = {0};
  struct frame x;
  int core_end = 0, stream_end = 0;
  for (int k = 0; k < l->ops.n; k++) {
    if (!find_frame(l, lines, k, &x) || x.first <= stream_end)
      continue;
    const bool is_core = nisa_is_core(x.region);
    if (is_core && x.first <= core_end)
      continue;
    *(is_core ? &core_end : &stream_end) = x.yield;
    array_push(l->a, &f, x);
  }
  return f;
}

static void write_frame(struct buf *out, const struct frame *f, bool is_first) {
  if (!is_first)
    buf_puts(out, "}\n");
  else if (nisa_is_core(f->region))
    buf_printf(out, "nisa.core %d {\n", nisa_core_number(f->region));
  else if (nisa_stream_is_queue(f->region))
    buf_printf(out, "nisa.queue %s on %s {\n", nisa_stream_name(f->region), nisa_text_attr(f->region, "nisa.on"));
  else
    buf_printf(out, "nisa.program %s {\n", nisa_stream_name(f->region));
}

/* ---- our operations ----------------------------------------------------------------------------------------------- */

/* Writes the lines of the NISA operations that have a readable form. */
static void write_own(struct listing *l, MlirAsmState names) {
  struct nisa_texts texts = {.by_what.arena = l->a};
  struct nisa_line w = {.arena = l->a, .names = names, .texts = &texts, .out = l->text};

  l->own = arena_new_array(l->a, struct own, (size_t)l->ops.n);
  for (int k = 0; k < l->ops.n; k++) {
    MlirOperation op = l->ops.v[k];
    const size_t at = l->text->len;
    if ((!nisa_op_of(op) && !nisa_sync_of(op)) || !nisa_can_write(&w, op))
      continue;
    nisa_write(&w, op);
    l->own[k] = (struct own){.at = at, .len = l->text->len - at};
  }
}

/* Puts something short in the place of each operation that was written, of the same name in all places.  Returns the operations that
 * MLIR prints. */
static MlirOperation *put_stand_ins(const struct listing *l, MlirLocation unknown) {
  MlirOperation *shown = arena_dup(l->a, l->ops.v, (size_t)l->ops.n * sizeof *shown);
  for (int k = 0; k < l->ops.n; k++) {
    if (!l->own[k].len)
      continue;
    MlirOperationState state = mlirOperationStateGet(ir_str(nisa_sync_name(NISA_SYNC_BARRIER)), unknown);
    shown[k] = l->own[k].stand_in = mlirOperationCreate(&state);
    mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(l->ops.v[k]), l->ops.v[k], shown[k]);
    mlirOperationRemoveFromParent(l->ops.v[k]);
  }
  return shown;
}

static void take_stand_ins(const struct listing *l) {
  for (int k = 0; k < l->ops.n; k++)
    if (l->own[k].len) {
      MlirOperation stand_in = l->own[k].stand_in;
      mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(stand_in), stand_in, l->ops.v[k]);
      mlirOperationDestroy(stand_in);
    }
}

/* ---- lines ------------------------------------------------------------------------------------------------------ */

/* Writes MLIR's line of operation k (-1: of none), or ours. */
static void write_line(const struct listing *l, int k, const char *s, const char *eol, struct buf *out) {
  if (k >= 0 && l->own[k].len) {
    buf_append(out, s, strspn(s, " "));
    buf_append(out, buf_text(l->text) + l->own[k].at, l->own[k].len);
  } else {
    buf_append(out, s, (size_t)(eol - s));
  }
  buf_putc(out, '\n');
}

/* Writes MLIR's text, with the lines of NISA operations and of streams in the readable form.  Returns the lines of the
 * operations in the new text, which has none for the terminators of streams. */
static const int *rewrite(const struct listing *l, const int *lines, const struct buf *plain, struct buf *out) {
  const char *s = buf_text(plain), *end = s + plain->len;
  const struct frames f = find_frames(l, lines);
  int *moved = arena_dup(l->a, lines, (size_t)l->ops.n * sizeof *lines);
  const struct frame *open[2];            /* a core, and a stream in it */
  int k = 0, n = 0, next = 0, n_open = 0; /* n: the frames that have ended, and so the lines that were left out */

  for (int line = 1; s < end; line++) {
    if (next < f.n && f.v[next].first == line)
      open[n_open++] = &f.v[next++];
    const struct frame *frame = n_open ? open[n_open - 1] : NULL;
    const char *eol = memchr(s, '\n', (size_t)(end - s));
    if (!eol)
      eol = end;
    while (k < l->ops.n && lines[k] < line)
      k++;
    const bool is_op = k < l->ops.n && lines[k] == line;
    if (is_op)
      moved[k] = line - n;
    if (frame && line == frame->yield) {
      moved[k] = 0;
    } else if (frame && (line == frame->first || line == frame->yield + 1)) {
      buf_append(out, s, strspn(s, " "));
      write_frame(out, frame, line == frame->first);
      if (line != frame->first) {
        n++;
        n_open--;
      }
    } else {
      write_line(l, is_op ? k : -1, s, eol, out);
    }
    s = eol + 1;
  }
  return moved;
}

/* Prints the module with the names from the locations, and puts the lines of our operations into it. */
static enum status print(struct ir *ir, MlirOperation module, int64_t elide_above, struct listing *l, struct buf *plain,
                         struct buf *out, const int **lines, struct error *err) {
  give_names(ir->ctx, l);
  MlirAsmState names = names_of(module, elide_above);
  write_own(l, names);
  const MlirOperation *shown = put_stand_ins(l, mlirLocationUnknownGet(ir->ctx));
  mlirOperationPrintWithState(module, names, append, plain);
  const struct ir_printed p = {
      .n = l->ops.n, .ops = shown, .text = buf_text(plain), .len = plain->len, .has_local_scope = true};
  enum status st = buf_status(plain) ? buf_status(plain) : buf_status(l->text);
  if (st)
    fail(err, st, "the NISA text exceeds its limit");
  else
    st = ir_lines(ir, &p, l->a, lines, err);
  take_stand_ins(l);
  mlirAsmStateDestroy(names);
  if (!st)
    *lines = rewrite(l, *lines, plain, out);
  return st;
}

enum status nisa_print(struct ir *ir, MlirOperation module, int64_t elide_above, struct buf *text, struct arena *a,
                       const int **lines, struct error *err) {
  struct buf own, plain, quoted;
  struct listing l = {.a = a, .text = &own};

  buf_init(&own, 2 * text->max);
  buf_init(&plain, 4 * text->max); /* the generic form has every type twice */
  buf_init(&quoted, 2 * text->max);
  mlirOperationWalk(module, list_op, &l, MlirWalkPreOrder);
  forget_locations(&l, mlirLocationUnknownGet(ir->ctx));
  enum status st = print(ir, module, elide_above, &l, &plain, &quoted, lines, err);
  if (!st) {
    put_unquoted(text, buf_text(&quoted), buf_text(&quoted) + quoted.len);
    st = buf_status(&quoted) ? buf_status(&quoted) : buf_status(text);
    if (st)
      fail(err, st, "the NISA text exceeds its limit");
  }
  restore_locations(&l);
  buf_clear(&own);
  buf_clear(&plain);
  buf_clear(&quoted);
  return st;
}
