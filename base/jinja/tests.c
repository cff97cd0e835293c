/* tests: "value is NAME". */
#include <math.h>
#include <string.h>

#include "base/jinja/jinja_int.h"

typedef enum test_kind {
    IS_DEFINED,
    IS_UNDEFINED,
    IS_NONE,
    IS_BOOLEAN,
    IS_TRUE,
    IS_FALSE,
    IS_INTEGER,
    IS_FLOAT,
    IS_NUMBER,
    IS_STRING,
    IS_MAPPING,
    IS_SEQUENCE,
    IS_ITERABLE,
    IS_CALLABLE,
    IS_LOWER,
    IS_UPPER,
    IS_ODD,
    IS_EVEN,
    IS_DIVISIBLE,
    IS_SAME,
    IS_ESCAPED,
    COMPARES
} test_kind;

typedef struct test {
    const char *name;
    test_kind kind;
    dt_jinja_operator op; /* of COMPARES */
} test;

/* clang-format off */
static const test tests[] = {
    {"defined", IS_DEFINED, 0}, {"undefined", IS_UNDEFINED, 0}, {"none", IS_NONE, 0},
    {"boolean", IS_BOOLEAN, 0}, {"true", IS_TRUE, 0}, {"false", IS_FALSE, 0},
    {"integer", IS_INTEGER, 0}, {"float", IS_FLOAT, 0}, {"number", IS_NUMBER, 0},
    {"string", IS_STRING, 0}, {"mapping", IS_MAPPING, 0}, {"sequence", IS_SEQUENCE, 0},
    {"iterable", IS_ITERABLE, 0}, {"callable", IS_CALLABLE, 0}, {"lower", IS_LOWER, 0},
    {"upper", IS_UPPER, 0}, {"odd", IS_ODD, 0}, {"even", IS_EVEN, 0},
    {"divisibleby", IS_DIVISIBLE, 0}, {"sameas", IS_SAME, 0}, {"escaped", IS_ESCAPED, 0},
    {"in", COMPARES, DT_OP_IN},
    {"eq", COMPARES, DT_OP_EQ}, {"equalto", COMPARES, DT_OP_EQ}, {"==", COMPARES, DT_OP_EQ},
    {"ne", COMPARES, DT_OP_NE}, {"!=", COMPARES, DT_OP_NE},
    {"lt", COMPARES, DT_OP_LT}, {"lessthan", COMPARES, DT_OP_LT}, {"<", COMPARES, DT_OP_LT},
    {"le", COMPARES, DT_OP_LE}, {"<=", COMPARES, DT_OP_LE},
    {"gt", COMPARES, DT_OP_GT}, {"greaterthan", COMPARES, DT_OP_GT}, {">", COMPARES, DT_OP_GT},
    {"ge", COMPARES, DT_OP_GE}, {">=", COMPARES, DT_OP_GE},
};
/* clang-format on */

int dt_jinja_test_find(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        if (strlen(tests[i].name) == length && memcmp(tests[i].name, name, length) == 0)
            return (int)i;
    return -1;
}

static bool has_length_and_items(dt_jinja_value value)
{
    return value.kind == DT_JINJA_STRING || value.kind == DT_JINJA_DICT ||
           value.kind == DT_JINJA_UNDEFINED ||
           (value.kind == DT_JINJA_LIST && value.shape <= DT_SHAPE_RANGE);
}

/* Tests whether a number is a multiple; gives its remainder. */
static dt_status remainder_of(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                              dt_jinja_value divisor)
{
    if (value.kind == DT_JINJA_STRING)
        return dt_jinja_fail(run, "expected a number, got str");
    return dt_value_binary(out, run, DT_OP_MOD, value, divisor);
}

static dt_status test_case(bool *out, dt_jinja_run *run, dt_jinja_value value, dt_text_class of)
{
    const dt_jinja_text *text;
    dt_status st = DT_OK;

    DT_TRY(dt_value_to_text(&text, run, value));
    *out = dt_text_has_class(text, of);
out:
    return st;
}

static bool is_same(dt_jinja_value a, dt_jinja_value b)
{
    if (a.kind != b.kind)
        return false;
    if (a.kind == DT_JINJA_LIST || a.kind == DT_JINJA_DICT)
        return a.as.other == b.as.other;
    return dt_value_equal(a, b);
}

static bool test_type(test_kind kind, dt_jinja_value value)
{
    switch (kind) {
    case IS_DEFINED:
        return value.kind != DT_JINJA_UNDEFINED;
    case IS_UNDEFINED:
        return value.kind == DT_JINJA_UNDEFINED;
    case IS_NONE:
        return value.kind == DT_JINJA_NONE;
    case IS_BOOLEAN:
        return value.kind == DT_JINJA_BOOL;
    case IS_TRUE:
        return value.kind == DT_JINJA_BOOL && value.as.truth;
    case IS_FALSE:
        return value.kind == DT_JINJA_BOOL && !value.as.truth;
    case IS_INTEGER:
        return value.kind == DT_JINJA_INTEGER;
    case IS_FLOAT:
        return value.kind == DT_JINJA_FLOAT;
    case IS_NUMBER:
        return value.kind == DT_JINJA_INTEGER || value.kind == DT_JINJA_FLOAT ||
               value.kind == DT_JINJA_BOOL;
    case IS_STRING:
        return value.kind == DT_JINJA_STRING;
    case IS_MAPPING:
        return value.kind == DT_JINJA_DICT;
    case IS_SEQUENCE:
        return has_length_and_items(value);
    case IS_ITERABLE:
        return has_length_and_items(value) || value.kind == DT_JINJA_LIST ||
               value.kind == DT_JINJA_LOOP;
    case IS_CALLABLE:
        return value.kind == DT_JINJA_METHOD || value.kind == DT_JINJA_FUNCTION ||
               value.kind == DT_JINJA_MACRO || value.kind == DT_JINJA_LOOP ||
               value.kind == DT_JINJA_UNDEFINED;
    case IS_ESCAPED:
        return value.kind == DT_JINJA_STRING && value.shape == DT_SHAPE_SAFE;
    default:
        return false;
    }
}

dt_status dt_jinja_test_apply(bool *out, dt_jinja_run *run, int index, dt_jinja_value value,
                              const dt_jinja_call *call)
{
    const test *t = &tests[index];
    bool two = t->kind == COMPARES || t->kind == IS_DIVISIBLE || t->kind == IS_SAME;
    dt_jinja_value args[DT_JINJA_PARAMS], rest;
    dt_status st = DT_OK;

    DT_TRY(dt_jinja_bind(args, run, call, t->name, two ? "other" : "", two));
    switch (t->kind) {
    case COMPARES:
        return dt_value_test(out, run, t->op, value, args[0]);
    case IS_SAME:
        *out = is_same(value, args[0]);
        break;
    case IS_LOWER:
    case IS_UPPER:
        return test_case(out, run, value, t->kind == IS_LOWER ? DT_TEXT_LOWER : DT_TEXT_UPPER);
    case IS_ODD:
    case IS_EVEN:
        DT_TRY(remainder_of(&rest, run, value, dt_jinja_integer(2)));
        *out = dt_value_equal(rest, dt_jinja_integer(t->kind == IS_ODD));
        break;
    case IS_DIVISIBLE:
        DT_TRY(remainder_of(&rest, run, value, args[0]));
        *out = dt_value_equal(rest, dt_jinja_integer(0));
        break;
    default:
        *out = test_type(t->kind, value);
        break;
    }
out:
    return st;
}
