/* hlo_control: modules with call, while and conditional, for test_hlo_dump.c, whose helpers they use. */

/* A computation of its own; the builder goes on in it.  Ended by setting its root. */
static struct hlo_builder computation(struct hlo_builder *b, const char *name) {
  struct hlo_builder c = *b;
  c.computation = hlo_computation_new(b->module, name);
  return c;
}

static struct hlo_computation *done(struct hlo_builder *c, hlo_val root) {
  assert_non_null(root);
  c->computation->root = root;
  return c->computation;
}

static void call_twice(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_F32, 3, 4), y = PARAM(b, "y", DT_F32, 3, 4);
  struct hlo_builder c = computation(b, "difference");
  hlo_val p = PARAM(&c, "p", DT_F32, 3, 4), q = PARAM(&c, "q", DT_F32, 3, 4);
  struct hlo_computation *f = done(&c, hlo_binary(&c, HLO_SUBTRACT, p, q));
  hlo_val d = hlo_call(b, f, 2, (hlo_val[]){x, y}), e = hlo_call(b, f, 2, (hlo_val[]){y, x});
  finish(b, hlo_binary(b, HLO_SUBTRACT, d, e));
}

/* condition: element 0 of the tuple is below `limit`. */
static struct hlo_computation *below(struct hlo_builder *b, const char *name, struct hlo_shape shape, int limit) {
  struct hlo_builder c = computation(b, name);
  hlo_val i = hlo_tuple_element(&c, hlo_parameter(&c, "state", shape), 0);
  return done(&c, hlo_compare(&c, HLO_LT, i, hlo_scalar(&c, i->shape.dtype, limit)));
}

/* i = 0; sum = 0; while i < 6: sum += x[i]; i += 1.  x goes around with the loop. */
static void while_sum(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_F32, 6, 4);
  hlo_val init = hlo_tuple(b, 3, (hlo_val[]){hlo_scalar(b, DT_I32, 0), hlo_full(b, DT_F32, 1, DIMS(4), 0), x});
  struct hlo_builder c = computation(b, "body");
  hlo_val p = hlo_parameter(&c, "state", init->shape), i = hlo_tuple_element(&c, p, 0),
          all = hlo_tuple_element(&c, p, 2);
  hlo_val row = hlo_dynamic_slice(&c, all, (hlo_val[]){i, hlo_scalar(&c, DT_I32, 0)}, DIMS(1, 4));
  hlo_val sum = hlo_binary(&c, HLO_ADD, hlo_tuple_element(&c, p, 1), hlo_reshape(&c, row, 1, DIMS(4)));
  hlo_val next = hlo_binary(&c, HLO_ADD, i, hlo_scalar(&c, DT_I32, 1));
  struct hlo_computation *body = done(&c, hlo_tuple(&c, 3, (hlo_val[]){next, sum, all}));
  hlo_val w = hlo_while(b, below(b, "condition", init->shape, 6), body, init);
  hlo_val r[] = {hlo_tuple_element(b, w, 1), hlo_tuple_element(b, w, 0)};
  assert_int_equal(hlo_finish(b, 2, r, (const char *[]){"sum", "i"}), ST_OK);
}

/* Adds one 3 times 4 times. */
static void while_nested(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_F32, 5);
  hlo_val init = hlo_tuple(b, 2, (hlo_val[]){hlo_scalar(b, DT_I32, 0), x});
  struct hlo_computation *bodies[2];
  for (int k = 0; k < 2; k++) {
    struct hlo_builder c = computation(b, k ? "outer" : "inner");
    hlo_val p = hlo_parameter(&c, "state", init->shape), i = hlo_tuple_element(&c, p, 0),
            v = hlo_tuple_element(&c, p, 1);
    hlo_val next = hlo_binary(&c, HLO_ADD, i, hlo_scalar(&c, DT_I32, 1));
    if (!k) {
      v = hlo_binary(&c, HLO_ADD, v, hlo_full(&c, DT_F32, 1, DIMS(5), 1));
    } else {
      struct hlo_computation *more = below(b, "inner_condition", init->shape, 3);
      hlo_computation_move_last(c.computation);
      hlo_val start = hlo_tuple(&c, 2, (hlo_val[]){hlo_scalar(&c, DT_I32, 0), v});
      v = hlo_tuple_element(&c, hlo_while(&c, more, bodies[0], start), 1);
    }
    bodies[k] = done(&c, hlo_tuple(&c, 2, (hlo_val[]){next, v}));
  }
  hlo_val w = hlo_while(b, below(b, "outer_condition", init->shape, 4), bodies[1], init);
  finish(b, hlo_tuple_element(b, w, 1));
}

/* How often is not known before: x = x + x * x + 1 as long as x < 1000.  The state is not a tuple. */
static void while_grows(struct hlo_builder *b) {
  hlo_val x = scalar_param(b, "x", DT_F32);
  struct hlo_builder c = computation(b, "body");
  hlo_val p = scalar_param(&c, "p", DT_F32);
  hlo_val y = hlo_binary(&c, HLO_ADD, hlo_binary(&c, HLO_ADD, p, hlo_binary(&c, HLO_MULTIPLY, p, p)),
                         hlo_scalar(&c, DT_F32, 1));
  struct hlo_computation *body = done(&c, y);
  c = computation(b, "condition");
  p = scalar_param(&c, "q", DT_F32);
  struct hlo_computation *more = done(&c, hlo_compare(&c, HLO_LT, p, hlo_scalar(&c, DT_F32, 1000)));
  finish(b, hlo_while(b, more, body, x));
}

static struct hlo_computation *unary_branch(struct hlo_builder *b, enum hlo_op op) {
  struct hlo_builder c = computation(b, hlo_op_name(op));
  hlo_val p = PARAM(&c, "p", DT_F32, 5);
  return done(&c, op == HLO_ADD ? hlo_binary(&c, op, p, p) : hlo_unary(&c, op, p));
}

static void choose_pred(struct hlo_builder *b) {
  hlo_val p = scalar_param(b, "p", DT_BOOL), x = PARAM(b, "x", DT_F32, 5);
  struct hlo_computation *branches[] = {unary_branch(b, HLO_EXP), unary_branch(b, HLO_NEGATE)};
  finish(b, hlo_conditional(b, p, 2, branches, (hlo_val[]){x, x}));
}

static void choose_index(struct hlo_builder *b) {
  hlo_val i = scalar_param(b, "i", DT_I32), x = PARAM(b, "x", DT_F32, 5);
  struct hlo_computation *branches[] = {unary_branch(b, HLO_NEGATE), unary_branch(b, HLO_CEIL),
                                        unary_branch(b, HLO_ADD)};
  finish(b, hlo_conditional(b, i, 3, branches, (hlo_val[]){x, x, x}));
}

/* A pair, swapped by a called computation. */
static void tuples(struct hlo_builder *b) {
  hlo_val x = PARAM(b, "x", DT_F32, 3), y = PARAM(b, "y", DT_I32, 4);
  hlo_val pair = hlo_tuple(b, 2, (hlo_val[]){x, y});
  struct hlo_builder c = computation(b, "swap");
  hlo_val p = hlo_parameter(&c, "pair", pair->shape);
  struct hlo_computation *swap =
      done(&c, hlo_tuple(&c, 2, (hlo_val[]){hlo_tuple_element(&c, p, 1), hlo_tuple_element(&c, p, 0)}));
  hlo_val s = hlo_call(b, swap, 1, &pair), r[] = {hlo_tuple_element(b, s, 0), hlo_tuple_element(b, s, 1)};
  assert_int_equal(hlo_finish(b, 2, r, (const char *[]){"a", "b"}), ST_OK);
}
