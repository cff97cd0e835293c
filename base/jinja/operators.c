/* operators: arithmetic, concatenation and comparison of values. */
#include <math.h>
#include <string.h>

#include "base/jinja/jinja_int.h"

static const char *const signs[] = {"+", "-", "*", "/", "//", "%", "**"};

static bool is_integer(dt_jinja_value value)
{
    return value.kind == DT_JINJA_INTEGER || value.kind == DT_JINJA_BOOL;
}

static int64_t integer_of(dt_jinja_value value)
{
    return value.kind == DT_JINJA_BOOL ? value.as.truth : value.as.integer;
}

static double real_of(dt_jinja_value value)
{
    return value.kind == DT_JINJA_FLOAT ? value.as.real : (double)integer_of(value);
}

/* --- numbers */

static bool power(int64_t *out, int64_t base, int64_t exponent)
{
    int64_t result = 1;

    for (; exponent > 0; exponent--) {
        if (__builtin_mul_overflow(result, base, &result))
            return false;
        if (result == 0 || result == 1) { /* base 0 or 1 */
            *out = result;
            return true;
        }
        if (base == -1) {
            *out = exponent % 2 != 0 ? -1 : 1;
            return true;
        }
    }
    *out = result;
    return true;
}

static int64_t floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static dt_status compute_integers(dt_jinja_value *out, const dt_jinja_run *run,
                                  dt_jinja_operator op, int64_t a, int64_t b)
{
    int64_t result = 0;
    bool fits = true;

    if ((op == DT_OP_DIV || op == DT_OP_FLOOR_DIV || op == DT_OP_MOD) && b == 0)
        return dt_jinja_fail(run, "division by zero");
    if (op == DT_OP_DIV || (op == DT_OP_POW && b < 0)) {
        *out = dt_jinja_real(op == DT_OP_DIV ? (double)a / (double)b : pow((double)a, (double)b));
        return a == 0 && op == DT_OP_POW ? dt_jinja_fail(run, "division by zero") : DT_OK;
    }
    if (op == DT_OP_ADD)
        fits = !__builtin_add_overflow(a, b, &result);
    else if (op == DT_OP_SUB)
        fits = !__builtin_sub_overflow(a, b, &result);
    else if (op == DT_OP_MUL)
        fits = !__builtin_mul_overflow(a, b, &result);
    else if (op == DT_OP_POW)
        fits = power(&result, a, b);
    else if (b == -1) /* INT64_MIN / -1 */
        fits = op == DT_OP_MOD || !__builtin_sub_overflow((int64_t)0, a, &result);
    else
        result = op == DT_OP_FLOOR_DIV ? floor_divide(a, b) : a - floor_divide(a, b) * b;
    if (!fits)
        return dt_jinja_fail(run, "an integer of more than 64 bits");
    *out = dt_jinja_integer(result);
    return DT_OK;
}

static dt_status compute_reals(dt_jinja_value *out, const dt_jinja_run *run, dt_jinja_operator op,
                               double a, double b)
{
    double rest;

    if ((op == DT_OP_DIV || op == DT_OP_FLOOR_DIV || op == DT_OP_MOD) && b == 0)
        return dt_jinja_fail(run, "float division by zero");
    switch (op) {
    case DT_OP_ADD:
        *out = dt_jinja_real(a + b);
        break;
    case DT_OP_SUB:
        *out = dt_jinja_real(a - b);
        break;
    case DT_OP_MUL:
        *out = dt_jinja_real(a * b);
        break;
    case DT_OP_DIV:
        *out = dt_jinja_real(a / b);
        break;
    case DT_OP_POW:
        *out = dt_jinja_real(pow(a, b));
        break;
    default:
        rest = fmod(a, b);
        if (rest != 0 && (rest < 0) != (b < 0))
            rest += b;
        *out = dt_jinja_real(op == DT_OP_MOD ? rest : floor((a - rest) / b + 0.5));
        break;
    }
    return DT_OK;
}

/* --- texts and lists */

static dt_status join_texts(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value a,
                            dt_jinja_value b)
{
    dt_jinja_sink sink = {.length = 0};
    dt_status st = DT_OK;

    if (a.shape != b.shape)
        return dt_jinja_fail(run,
                             "unsupported: '+' of a string and the result of 'safe' or 'escape'");
    DT_TRY(dt_sink_add_text(run, &sink, dt_text_of(a)));
    DT_TRY(dt_sink_add_text(run, &sink, dt_text_of(b)));
    *out = dt_jinja_string(dt_sink_text(run, &sink));
out:
    return st;
}

static dt_status join_lists(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value a,
                            dt_jinja_value b)
{
    const dt_jinja_list *lists[] = {dt_list_of(a), dt_list_of(b)};
    dt_status st = DT_OK;

    DT_TRY(dt_jinja_spend(run, lists[0]->count + lists[1]->count));
    *out = dt_value_list(run, a.shape, lists[0]->count + lists[1]->count);
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < lists[k]->count; i++)
            dt_jinja_append(run, *out, lists[k]->items[i]);
out:
    return st;
}

static dt_status repeat(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value, int64_t times)
{
    dt_jinja_sink sink = {.length = 0};
    dt_status st = DT_OK;

    if (value.kind == DT_JINJA_LIST)
        *out = dt_value_list(run, value.shape, 0);
    for (int64_t k = 0; k < times; k++) {
        DT_TRY(dt_jinja_spend(run, 1));
        if (value.kind == DT_JINJA_STRING) {
            DT_TRY(dt_sink_add_text(run, &sink, dt_text_of(value)));
            continue;
        }
        DT_TRY(dt_jinja_spend(run, dt_list_of(value)->count));
        for (int64_t i = 0; i < dt_list_of(value)->count; i++)
            dt_jinja_append(run, *out, dt_list_of(value)->items[i]);
    }
    if (value.kind == DT_JINJA_STRING)
        *out = dt_jinja_string(dt_sink_text(run, &sink));
out:
    return st;
}

static bool is_sequence(dt_jinja_value value)
{
    return value.kind == DT_JINJA_STRING ||
           (value.kind == DT_JINJA_LIST && value.shape <= DT_SHAPE_TUPLE);
}

dt_status dt_value_binary(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_operator op,
                          dt_jinja_value a, dt_jinja_value b)
{
    bool numbers =
        (is_integer(a) || a.kind == DT_JINJA_FLOAT) && (is_integer(b) || b.kind == DT_JINJA_FLOAT);

    if (op == DT_OP_MOD && a.kind == DT_JINJA_STRING)
        return dt_text_format_percent(out, run, dt_text_of(a), b);
    if (a.kind == DT_JINJA_UNDEFINED || b.kind == DT_JINJA_UNDEFINED)
        return dt_value_refuse_undefined(run, a.kind == DT_JINJA_UNDEFINED ? a : b);
    if (is_integer(a) && is_integer(b))
        return compute_integers(out, run, op, integer_of(a), integer_of(b));
    if (numbers)
        return compute_reals(out, run, op, real_of(a), real_of(b));
    if (op == DT_OP_ADD && a.kind == b.kind && is_sequence(a) &&
        (a.kind == DT_JINJA_STRING || a.shape == b.shape))
        return a.kind == DT_JINJA_STRING ? join_texts(out, run, a, b) : join_lists(out, run, a, b);
    if (op == DT_OP_MUL && is_sequence(a) && is_integer(b))
        return repeat(out, run, a, integer_of(b));
    if (op == DT_OP_MUL && is_integer(a) && is_sequence(b))
        return repeat(out, run, b, integer_of(a));
    if (op == DT_OP_ADD && a.kind == DT_JINJA_STRING)
        return dt_jinja_fail(run, "can only concatenate str (not \"%s\") to str", dt_value_type(b));
    if (op == DT_OP_ADD && a.kind == DT_JINJA_LIST && a.shape == DT_SHAPE_LIST)
        return dt_jinja_fail(run, "can only concatenate list (not \"%s\") to list",
                             dt_value_type(b));
    return dt_jinja_fail(run, "unsupported operand type(s) for %s: '%s' and '%s'", signs[op],
                         dt_value_type(a), dt_value_type(b));
}

dt_status dt_value_negate(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value, bool minus)
{
    if (value.kind == DT_JINJA_UNDEFINED)
        return dt_value_refuse_undefined(run, value);
    if (value.kind == DT_JINJA_FLOAT)
        *out = dt_jinja_real(minus ? -value.as.real : value.as.real);
    else if (!is_integer(value))
        return dt_jinja_fail(run, "bad operand type for unary %s: '%s'", minus ? "-" : "+",
                             dt_value_type(value));
    else
        return compute_integers(out, run, minus ? DT_OP_SUB : DT_OP_ADD, 0, integer_of(value));
    return DT_OK;
}

dt_status dt_value_test(bool *out, dt_jinja_run *run, dt_jinja_operator op, dt_jinja_value a,
                        dt_jinja_value b)
{
    dt_status st = DT_OK;
    int order;

    if (op == DT_OP_EQ || op == DT_OP_NE) {
        *out = dt_value_equal(a, b) == (op == DT_OP_EQ);
        return dt_jinja_spend(run, a.kind == DT_JINJA_STRING ? dt_text_of(a)->length / 64 : 1);
    }
    if (op == DT_OP_IN || op == DT_OP_NOT_IN) {
        DT_TRY(dt_value_contains(out, run, b, a));
        *out = *out == (op == DT_OP_IN);
        return DT_OK;
    }
    DT_TRY(dt_value_compare(&order, run, a, b));
    if (order == 2) /* NaN */
        *out = false;
    else
        *out = op == DT_OP_LT   ? order < 0
               : op == DT_OP_LE ? order <= 0
               : op == DT_OP_GT ? order > 0
                                : order >= 0;
out:
    return st;
}
