/* rules_registers: types of registers, and what may be loaded, stored, moved and computed.
 *
 * A register has 32 bits.  What is loaded settles its type: uint32, float32, or int32 for all other integers of 8, 16 and 32
 * bits, which are extended by their sign or by zeros.  Arithmetic of integers wraps around at 32 bits, a comparison gives 1 or 0 of
 * int32, and nothing is converted between integers and floats.
 */
#include <math.h>
#include <string.h>

#include "nki/rules.h"

#define VIEW(name) (nki_value(c, name)->view)

/* The type of a register that has such an element; DT_NONE if none can. */
static enum dtype register_type(enum dtype t) {
  switch (t) {
  case DT_I8:
  case DT_I16:
  case DT_I32:
  case DT_U8:
  case DT_U16:
    return DT_I32;
  case DT_U32:
    return DT_U32;
  case DT_F32:
    return DT_F32;
  default:
    return DT_NONE;
  }
}

static bool refuse_types(const char *name, const char *is, const struct nki_tensor *reg, struct nki_error *err) {
  return nki_refuse(err, DG_NKI_DTYPE, "use another register: registers do not convert",
                    "%s is %s, but the register %s has %s", name, is, reg->name, dtype_numpy_name(reg->dtype));
}

static bool is_one_element(const char *name, const struct nki_view *v, struct nki_error *err) {
  if (nki_elements(v) == 1)
    return true;
  return nki_refuse(err, DG_NKI_SHAPE_MISMATCH, "index it: t[0:1, i:i+1]",
                    "%s has %lld elements, but a register holds one", name, (long long)nki_elements(v));
}

/* The register that a call writes. */
static struct nki_tensor *written(const struct nki_call *c, struct nki_error *err) {
  struct nki_tensor *reg = VIEW("dst")->tensor;
  if (reg->reg == NKI_REGISTER)
    return reg;
  nki_refuse(err, DG_NKI_DEVICE_LOOP, "make another one with nisa.register_alloc",
             "dst is %s, which a loop or an operator has made: it can only be read", reg->name);
  return NULL;
}

static bool check_load(const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *src = VIEW("src");
  const enum dtype type = register_type(src->tensor->dtype);
  struct nki_tensor *reg = written(c, err);
  if (!reg || !is_one_element("src", src, err))
    return false;
  if (type == DT_NONE || nki_is_packed(src->tensor->packed))
    return nki_refuse(err, DG_NKI_DTYPE, "convert it to float32 or to an integer with nisa.tensor_copy",
                      "src has the type %s, which no register holds", nki_type_name(src->tensor));
  if (reg->is_typed && reg->dtype != type)
    return refuse_types("src", dtype_numpy_name(src->tensor->dtype), reg, err);
  reg->dtype = type;
  reg->is_typed = true;
  return true;
}

static bool check_store(const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst");
  const struct nki_tensor *reg = VIEW("src")->tensor;
  const enum dtype type = register_type(dst->tensor->dtype);
  if (!is_one_element("dst", dst, err))
    return false;
  if (type == DT_NONE || nki_is_packed(dst->tensor->packed) || (type == DT_F32) != (reg->dtype == DT_F32))
    return refuse_types("dst", nki_type_name(dst->tensor), reg, err);
  return true;
}

/* A number that becomes a register of type t. */
static bool fits(const char *name, const struct nki_value *v, enum dtype t, struct nki_error *err) {
  if (t == DT_F32)
    return true;
  if (v->kind == NKI_FLOAT)
    return nki_refuse(err, DG_NKI_DTYPE, "write an integer, or use a register of float32",
                      "%s is the float %g, but the register has %s", name, v->number, dtype_numpy_name(t));
  const int64_t least = t == DT_I32 ? INT32_MIN : 0, most = t == DT_I32 ? INT32_MAX : UINT32_MAX;
  if (v->integer >= least && v->integer <= most)
    return true;
  return nki_refuse(err, DG_NKI_SIZE_LIMIT, "a register has 32 bits", "%s is %lld, but %s goes from %lld to %lld", name,
                    (long long)v->integer, dtype_numpy_name(t), (long long)least, (long long)most);
}

/* The type that a number gives a register that has none yet. */
static enum dtype type_of_number(const struct nki_value *v) {
  return v->kind == NKI_FLOAT ? DT_F32 : v->integer > INT32_MAX ? DT_U32 : DT_I32;
}

static bool check_move(const struct nki_call *c, struct nki_error *err) {
  const struct nki_value *src = nki_value(c, "src");
  struct nki_tensor *reg = written(c, err);
  if (!reg)
    return false;
  const enum dtype type = src->kind == NKI_VIEW ? src->view->tensor->dtype
                          : reg->is_typed       ? reg->dtype
                                                : type_of_number(src);
  if (src->kind == NKI_VIEW && reg->is_typed && reg->dtype != type)
    return refuse_types("src", dtype_numpy_name(type), reg, err);
  if (src->kind != NKI_VIEW && !fits("src", src, type, err))
    return false;
  reg->dtype = type;
  reg->is_typed = true;
  return true;
}

static bool check_alu(const struct nki_call *c, struct nki_error *err) {
  const struct nki_op *op = nki_value(c, "op")->op;
  const struct nki_value *x = nki_value(c, "x"), *y = nki_value(c, "y");
  const struct nki_value *reg = x->kind == NKI_VIEW ? x : y, *other = reg == x ? y : x;
  const enum dtype t = reg->view->tensor->dtype;
  if (other->kind == NKI_VIEW ? other->view->tensor->dtype != t : !fits("a number", other, t, err))
    return err->text ? false
                     : refuse_types("an operand", dtype_numpy_name(other->view->tensor->dtype), reg->view->tensor, err);
  if (op->is == NKI_BITS && t == DT_F32)
    return nki_refuse(err, DG_NKI_DTYPE, "operations on bits take integers", "the register %s has float32",
                      reg->view->tensor->name);
  VIEW("dst")->tensor->dtype = !strncmp(op->nisa, "is_", 3) ? DT_I32 : t;
  return true;
}

static bool check_bound(const struct nki_call *c, const char *name, struct nki_error *err) {
  const struct nki_value *v = nki_value(c, name);
  if (v->kind == NKI_VIEW)
    return v->view->tensor->dtype != DT_F32 ||
           nki_refuse(err, DG_NKI_DTYPE, "load an integer", "%s is a register of float32", name);
  return fits(name, v, DT_I32, err);
}

static bool check_for(const struct nki_call *c, struct nki_error *err) {
  const int64_t step = nki_first_int(nki_value(c, "step"), 1);
  if (step < 1 || step > INT32_MAX)
    return nki_refuse(err, DG_NKI_DEVICE_LOOP, "count upwards, and compute the index from that",
                      "the step of a loop on the device is %lld, but it must be at least 1", (long long)step);
  return check_bound(c, "lower", err) && check_bound(c, "upper", err);
}

bool nki_rules_registers(const struct nki_call *c, struct nki_error *err) {
  switch (c->kind) {
  case NKI_REGISTER_LOAD:
    return check_load(c, err);
  case NKI_REGISTER_STORE:
    return check_store(c, err);
  case NKI_REGISTER_MOVE:
    return check_move(c, err);
  case NKI_REGISTER_ALU:
    return check_alu(c, err);
  case NKI_DEVICE_FOR:
    return check_for(c, err);
  default:
    return true;
  }
}
