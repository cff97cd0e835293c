/* jinja_int: what the files of the interpreter share, from the lexer up to the evaluation of templates.
 *
 * Order      run <- lexer <- expression <- statement; run <- text, cases <- value <- arguments, print <- format <- operators,
 *            methods <- attributes <- text_filters, list_filters, tests <- filters <- evaluate <- execute
 */
#ifndef DT_BASE_JINJA_INT_H
#define DT_BASE_JINJA_INT_H

#include "base/jinja/jinja.h"

/* --- text: a string and the origin of each of its bytes */

typedef struct dt_jinja_text {
    const char *data;       /* UTF-8 */
    uint32_t length, codes; /* bytes; code points, as many as bytes if the text is ASCII */
    uint32_t origin;        /* of all bytes, if there are no pieces */
    uint32_t piece_count;
    const dt_jinja_piece *pieces;
} dt_jinja_text;

/* A text that grows, in the arena of a run. */
typedef struct dt_jinja_sink {
    char *data;
    size_t length;
    int64_t capacity;
    dt_jinja_piece *pieces; /* the last one ends at `length` */
    size_t piece_count;
    int64_t piece_capacity;
} dt_jinja_sink;

/* --- lexer */

typedef enum dt_jinja_token_kind {
    DT_TOKEN_END,
    DT_TOKEN_DATA,
    DT_TOKEN_BLOCK_BEGIN,
    DT_TOKEN_BLOCK_END,
    DT_TOKEN_PRINT_BEGIN,
    DT_TOKEN_PRINT_END,
    DT_TOKEN_NAME,
    DT_TOKEN_STRING,
    DT_TOKEN_INTEGER,
    DT_TOKEN_FLOAT,
    DT_TOKEN_OPERATOR
} dt_jinja_token_kind;

typedef struct dt_jinja_token {
    dt_jinja_token_kind kind;
    int line;
    const char *data; /* a name, the text between tags, a string's value, an operator */
    size_t length;
    int64_t integer;
    double real;
} dt_jinja_token;

typedef struct dt_jinja_tokens {
    dt_jinja_token *items;
    int64_t count, capacity;
} dt_jinja_tokens;

/* Adds the tokens of a template, in the arena, the last one DT_TOKEN_END. The error names the line. */
dt_status dt_jinja_lex(dt_jinja_tokens *out, const char *text, size_t length, const char *name,
                       dt_arena *arena, dt_error *err);

/* --- parser */

typedef enum dt_jinja_node_kind {
    /* expressions */
    DT_NODE_CONSTANT,  /* value */
    DT_NODE_NAME,      /* name */
    DT_NODE_LIST,      /* items */
    DT_NODE_TUPLE,     /* items */
    DT_NODE_DICT,      /* items: keys and values in turn */
    DT_NODE_ATTRIBUTE, /* a.name */
    DT_NODE_ITEM,      /* a[b] */
    DT_NODE_SLICE,     /* a[b:c:d]; each may be NULL */
    DT_NODE_CALL,      /* a(args) */
    DT_NODE_FILTER,    /* a|name(args); a is NULL for the text of a block */
    DT_NODE_TEST,      /* a is name(args) */
    DT_NODE_IF_ELSE,   /* a if b else c; c may be NULL */
    DT_NODE_OR,
    DT_NODE_AND,
    DT_NODE_NOT,
    DT_NODE_COMPARE, /* a, then items with `operators` */
    DT_NODE_BINARY,  /* a `op` b */
    DT_NODE_UNARY,   /* `op` a */
    DT_NODE_CONCAT,  /* items */
    /* statements */
    DT_NODE_DATA,         /* value */
    DT_NODE_PRINT,        /* items */
    DT_NODE_FOR,          /* for target a in b if c: body, else others; `flag`: recursive */
    DT_NODE_IF,           /* if a: body, else others */
    DT_NODE_SET,          /* target a = b */
    DT_NODE_SET_BLOCK,    /* target a = body, through filter b */
    DT_NODE_WITH,         /* items: targets and values in turn; body */
    DT_NODE_MACRO,        /* name, params, body */
    DT_NODE_CALL_BLOCK,   /* call a with a caller: params, body */
    DT_NODE_FILTER_BLOCK, /* body through filter a */
    DT_NODE_GENERATION,   /* body */
    DT_NODE_BREAK,
    DT_NODE_CONTINUE,
    DT_NODE_MEMBER /* a target: name.attribute */
} dt_jinja_node_kind;

typedef enum dt_jinja_operator {
    DT_OP_ADD,
    DT_OP_SUB,
    DT_OP_MUL,
    DT_OP_DIV,
    DT_OP_FLOOR_DIV,
    DT_OP_MOD,
    DT_OP_POW,
    DT_OP_EQ,
    DT_OP_NE,
    DT_OP_LT,
    DT_OP_LE,
    DT_OP_GT,
    DT_OP_GE,
    DT_OP_IN,
    DT_OP_NOT_IN
} dt_jinja_operator;

typedef struct dt_jinja_node dt_jinja_node;
typedef const dt_jinja_text *dt_jinja_name; /* interned: equal names have equal addresses */

typedef struct dt_jinja_nodes {
    dt_jinja_node **items;
    int64_t count, capacity;
} dt_jinja_nodes;

typedef struct dt_jinja_keyword {
    dt_jinja_name name;
    dt_jinja_node *value; /* NULL: a parameter without a default */
} dt_jinja_keyword;

/* The arguments of a call, or the parameters of a macro (keywords alone). */
typedef struct dt_jinja_arguments {
    dt_jinja_nodes positional;
    dt_jinja_keyword *keywords;
    int64_t keyword_count, keyword_capacity;
    dt_jinja_node *list, *dict; /* *list, **dict */
} dt_jinja_arguments;

struct dt_jinja_node {
    dt_jinja_node_kind kind;
    int line;
    dt_jinja_operator op;
    bool flag;
    bool takes_rest, takes_keywords, takes_caller; /* a macro that reads varargs, kwargs, caller */
    dt_jinja_name name, attribute;
    dt_jinja_node *a, *b, *c, *d;
    dt_jinja_nodes items, body, others;
    dt_jinja_operator *operators;
    dt_jinja_arguments *arguments;
    int callee; /* of a filter or a test: its place in the table; -1: unknown */
    dt_jinja_value value;
};

struct dt_jinja {
    dt_arena arena;
    const char *name;
    dt_jinja_nodes body;
    const dt_jinja_text **names;
    int64_t name_count, name_capacity;
    const dt_jinja_text **literals;
    int64_t literal_count, literal_capacity;
    bool generates;
};

/* Returns the interned name; NULL if the template has none such and `add` is false. */
dt_jinja_name dt_jinja_intern(dt_jinja *jinja, const char *data, size_t length, bool add);

/* --- values */

typedef enum dt_jinja_kind {
    DT_JINJA_UNDEFINED,
    DT_JINJA_NONE,
    DT_JINJA_BOOL,
    DT_JINJA_INTEGER,
    DT_JINJA_FLOAT,
    DT_JINJA_STRING,
    DT_JINJA_LIST,
    DT_JINJA_DICT,
    DT_JINJA_NAMESPACE,
    DT_JINJA_METHOD,   /* of a value */
    DT_JINJA_FUNCTION, /* shape: dt_jinja_function */
    DT_JINJA_MACRO,
    DT_JINJA_LOOP,
    DT_JINJA_MISSING /* an argument that was not given */
} dt_jinja_kind;

/* The shape of a DT_JINJA_LIST. A generator can be iterated once, and has no length. */
enum {
    DT_SHAPE_LIST,
    DT_SHAPE_TUPLE,
    DT_SHAPE_RANGE,
    DT_SHAPE_GENERATOR,
    DT_SHAPE_VIEW /* keys(), values(), items() of a dict */
};
enum { DT_SHAPE_PLAIN, DT_SHAPE_SAFE }; /* of a string: the result of `safe` and `escape` */

typedef enum dt_jinja_function {
    DT_FUNCTION_RANGE,
    DT_FUNCTION_DICT,
    DT_FUNCTION_NAMESPACE,
    DT_FUNCTION_RAISE,
    DT_FUNCTION_STRFTIME,
    DT_FUNCTION_CYCLE,  /* loop.cycle */
    DT_FUNCTION_CHANGED /* loop.changed */
} dt_jinja_function;

typedef struct dt_jinja_list {
    dt_jinja_value *items;
    int64_t count, capacity;
    bool consumed; /* a generator that was iterated */
} dt_jinja_list;

typedef struct dt_jinja_entry {
    dt_jinja_value key, value;
} dt_jinja_entry;

typedef struct dt_jinja_dict { /* also a namespace */
    dt_jinja_entry *entries;
    int64_t count, capacity;
} dt_jinja_dict;

/* Why a value is undefined. */
typedef struct dt_jinja_lack {
    const char *hint;          /* the whole message; else: */
    const char *owner;         /* type of the value without such an attribute; NULL: a variable */
    const dt_jinja_text *name; /* of the variable or the attribute */
} dt_jinja_lack;

typedef struct dt_jinja_method {
    dt_jinja_value self;
    int index; /* in the table of its kind */
} dt_jinja_method;

typedef struct dt_jinja_scope dt_jinja_scope;

typedef struct dt_jinja_macro {
    const dt_jinja_node *node;
    dt_jinja_scope *closure;
} dt_jinja_macro;

typedef struct dt_jinja_loop {
    const dt_jinja_node *node;
    dt_jinja_scope *closure;
    const dt_jinja_list *items;
    int64_t index0, depth0;
    dt_jinja_value changed; /* the last arguments of changed(); MISSING at first */
} dt_jinja_loop;

typedef struct dt_jinja_variable {
    dt_jinja_name name;
    dt_jinja_value value;
} dt_jinja_variable;

struct dt_jinja_scope {
    dt_jinja_scope *parent;
    bool kept; /* a macro or a loop refers to it */
    dt_jinja_variable *variables;
    int64_t count, capacity;
};

/* Arguments of a call. */
typedef struct dt_jinja_call {
    const dt_jinja_value *positional;
    int64_t count;
    const dt_jinja_entry *keywords; /* keys are strings */
    int64_t keyword_count;
} dt_jinja_call;

struct dt_jinja_run {
    const dt_jinja *jinja;
    dt_arena *arena;
    int64_t now;
    int line;             /* that is evaluated, for errors */
    int64_t steps, bytes; /* that are left: evaluations, and memory */
    int depth;            /* that is left */
    dt_jinja_scope *globals;
    dt_jinja_value block; /* the text of the filter block that is evaluated */
    dt_status (*call_macro)(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_macro *macro,
                            const dt_jinja_call *call);
    /* Renders a recursive loop with other items. */
    dt_status (*call_loop)(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_loop *loop,
                           dt_jinja_value items);
    dt_error *err;
};

static inline const dt_jinja_text *dt_text_of(dt_jinja_value value)
{
    return (const dt_jinja_text *)value.as.other;
}

static inline dt_jinja_list *dt_list_of(dt_jinja_value value)
{
    return (dt_jinja_list *)(uintptr_t)value.as.other;
}

static inline dt_jinja_dict *dt_dict_of(dt_jinja_value value)
{
    return (dt_jinja_dict *)(uintptr_t)value.as.other;
}

static inline dt_jinja_value dt_jinja_integer(int64_t integer)
{
    return (dt_jinja_value){.kind = DT_JINJA_INTEGER, .as.integer = integer};
}

static inline dt_jinja_value dt_jinja_real(double real)
{
    return (dt_jinja_value){.kind = DT_JINJA_FLOAT, .as.real = real};
}

static inline dt_jinja_value dt_jinja_missing(void)
{
    return (dt_jinja_value){.kind = DT_JINJA_MISSING};
}

static inline dt_jinja_value dt_jinja_string(const dt_jinja_text *text)
{
    return (dt_jinja_value){.kind = DT_JINJA_STRING, .as.other = text};
}

/* Records "'NAME', line N: ..."; returns DT_ERR_USAGE. */
dt_status dt_jinja_fail(const dt_jinja_run *run, const char *fmt, ...) DT_PRINTF(2, 3);
/* Takes one from the depth that is left; the caller adds it again. */
dt_status dt_jinja_deepen(dt_jinja_run *run);
/* Takes steps from those that are left. */
dt_status dt_jinja_spend(dt_jinja_run *run, int64_t steps);

/* Allocate zeroed memory in the arena of a run. If a run takes too much, its next step fails. */
void *dt_jinja_alloc(dt_jinja_run *run, size_t bytes);
void *dt_jinja_alloc_array(dt_jinja_run *run, size_t count, size_t elem_bytes);
/* Like dt_arena_array_room, from a capacity of 4. */
void *dt_jinja_room(dt_jinja_run *run, void *items, int64_t count, int64_t *capacity,
                    size_t elem_bytes);

/* --- text.c */

dt_status dt_sink_add(dt_jinja_run *run, dt_jinja_sink *sink, const char *data, size_t length,
                      uint32_t origin);
/* Adds bytes from .. to of a text. */
dt_status dt_sink_add_part(dt_jinja_run *run, dt_jinja_sink *sink, const dt_jinja_text *text,
                           size_t from, size_t to);
dt_status dt_sink_add_text(dt_jinja_run *run, dt_jinja_sink *sink, const dt_jinja_text *text);
const dt_jinja_text *dt_sink_text(dt_jinja_run *run, const dt_jinja_sink *sink);
/* Marks the bytes from `from` on: adds `mark` to their origins. */
void dt_sink_mark(dt_jinja_run *run, dt_jinja_sink *sink, size_t from, uint32_t mark);

/* Not counted: for the parser, and for what the caller of a run gives. */
const dt_jinja_text *dt_jinja_new_text(dt_arena *arena, const char *data, size_t length,
                                       uint32_t origin);
/* Returns bytes from .. to of a text; not a copy. */
const dt_jinja_text *dt_text_part(dt_jinja_run *run, const dt_jinja_text *text, size_t from,
                                  size_t to);
uint32_t dt_text_origin_at(const dt_jinja_text *text, size_t at);
/* Returns the byte where the code point of this index begins; `length` after the last one. */
size_t dt_text_byte_of(const dt_jinja_text *text, int64_t index);
/* Returns the index of the code point that begins at this byte. */
int64_t dt_text_index_of(const dt_jinja_text *text, size_t byte);
/* Finds `part` in bytes from .. to of a text. Returns -1: not there. */
int64_t dt_text_find(const dt_jinja_text *text, const dt_jinja_text *part, size_t from, size_t to);
int64_t dt_text_find_last(const dt_jinja_text *text, const dt_jinja_text *part, size_t from,
                          size_t to);
bool dt_text_equal(const dt_jinja_text *a, const dt_jinja_text *b);
int dt_text_compare(const dt_jinja_text *a, const dt_jinja_text *b);
bool dt_text_is(const dt_jinja_text *text, const char *literal);

/* White space as in Python. Returns the bytes of a space that begins, or ends, at `at`; 0: another character. */
size_t dt_space_at(const char *data, size_t length, size_t at);
size_t dt_space_before(const char *data, size_t at);

/* --- cases.c: upper and lower case as in Python, with the mappings to several code points */

typedef enum dt_text_case {
    DT_CASE_UPPER,
    DT_CASE_LOWER,
    DT_CASE_TITLE,      /* str.title */
    DT_CASE_CAPITALIZE, /* str.capitalize */
    DT_CASE_SWAP,
    DT_CASE_WORDS /* the filter `title` */
} dt_text_case;

dt_status dt_text_change_case(const dt_jinja_text **out, dt_jinja_run *run,
                              const dt_jinja_text *text, dt_text_case to);

typedef enum dt_text_class {
    DT_TEXT_ALPHA,
    DT_TEXT_ALNUM,
    DT_TEXT_DIGIT,
    DT_TEXT_SPACE,
    DT_TEXT_LOWER,
    DT_TEXT_UPPER
} dt_text_class;

bool dt_text_has_class(const dt_jinja_text *text, dt_text_class of);
/* Returns whether repr() shows the code point as it is. */
bool dt_code_is_printable(uint32_t code);

/* --- value.c */

const char *dt_value_type(dt_jinja_value value); /* as Python names it: "str", "NoneType" */
bool dt_value_truth(dt_jinja_value value);
bool dt_value_equal(dt_jinja_value a, dt_jinja_value b);
/* Compares for sorting: -1, 0, 1; 2 if one is NaN. Refuses values of types that Python does not order. */
dt_status dt_value_compare(int *out, dt_jinja_run *run, dt_jinja_value a, dt_jinja_value b);
dt_status dt_value_contains(bool *out, dt_jinja_run *run, dt_jinja_value container,
                            dt_jinja_value item);
/* Gives the items that a loop sees: keys of a dict, characters of a string. */
dt_status dt_value_iterate(const dt_jinja_list **out, dt_jinja_run *run, dt_jinja_value value);
dt_status dt_value_length(int64_t *out, dt_jinja_run *run, dt_jinja_value value);
dt_jinja_value dt_value_list(dt_jinja_run *run, int shape, int64_t room);
const dt_jinja_entry *dt_dict_find(const dt_jinja_dict *dict, dt_jinja_value key);
const dt_jinja_entry *dt_dict_find_text(const dt_jinja_dict *dict, const dt_jinja_text *key);
/* Sets an entry, or replaces its value. */
dt_status dt_dict_set(dt_jinja_run *run, dt_jinja_dict *dict, dt_jinja_value key,
                      dt_jinja_value value);
dt_jinja_value dt_value_undefined(dt_jinja_run *run, dt_jinja_value owner,
                                  const dt_jinja_text *name);
dt_jinja_value dt_value_undefined_name(dt_jinja_run *run, dt_jinja_name name);
dt_jinja_value dt_value_undefined_hint(dt_jinja_run *run, const char *hint);
/* Fails with the message of an undefined value, as every use of it does except those that are allowed. */
dt_status dt_value_refuse_undefined(const dt_jinja_run *run, dt_jinja_value value);
/* a[from:to:step]; DT_JINJA_MISSING or none: left out. */
dt_status dt_value_slice(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                         const dt_jinja_value bounds[3]);

/* --- operators.c */

dt_status dt_value_binary(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_operator op,
                          dt_jinja_value a, dt_jinja_value b);
dt_status dt_value_negate(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value, bool minus);
/* Compares a with b, by DT_OP_EQ to DT_OP_NOT_IN. */
dt_status dt_value_test(bool *out, dt_jinja_run *run, dt_jinja_operator op, dt_jinja_value a,
                        dt_jinja_value b);

/* --- print.c: str() and repr() */

dt_status dt_value_print(dt_jinja_run *run, dt_jinja_sink *sink, dt_jinja_value value);
dt_status dt_value_repr(dt_jinja_run *run, dt_jinja_sink *sink, dt_jinja_value value);
dt_status dt_value_to_text(const dt_jinja_text **out, dt_jinja_run *run, dt_jinja_value value);

enum { DT_REAL_MOST = 32 };
/* Writes a float as Python's repr() does. */
void dt_real_print(char out[DT_REAL_MOST], double real);

/* JSON as json.dumps writes it */

typedef struct dt_jinja_json_style {
    bool ascii, sorted;
    const dt_jinja_text *indent;              /* NULL: on one line */
    const dt_jinja_text *between, *after_key; /* NULL: ", " and ": " */
} dt_jinja_json_style;

dt_status dt_value_print_json(dt_jinja_run *run, dt_jinja_sink *sink, dt_jinja_value value,
                              const dt_jinja_json_style *style);

/* --- arguments.c */

enum { DT_JINJA_PARAMS = 5 };

/* Puts the arguments of a call in the order of `params` ("old, new, count"), those not given as DT_JINJA_MISSING; the
 * first `least` must be given. `what` names the function in errors. */
dt_status dt_jinja_bind(dt_jinja_value out[DT_JINJA_PARAMS], const dt_jinja_run *run,
                        const dt_jinja_call *call, const char *what, const char *params, int least);
/* Return an argument, or the fallback if it is missing or none; they refuse other types. */
dt_status dt_call_integer(int64_t *out, const dt_jinja_run *run, dt_jinja_value argument,
                          int64_t fallback, const char *what);
dt_status dt_call_text(const dt_jinja_text **out, const dt_jinja_run *run, dt_jinja_value argument,
                       const dt_jinja_text *fallback, const char *what);

/* --- edit.c */

dt_status dt_text_strip(const dt_jinja_text **out, dt_jinja_run *run, const dt_jinja_text *text,
                        const dt_jinja_text *characters, bool left, bool right);
/* most < 0: all. */
dt_status dt_text_replace(const dt_jinja_text **out, dt_jinja_run *run, const dt_jinja_text *text,
                          const dt_jinja_text *old, const dt_jinja_text *new_text, int64_t most);
/* The lines of a text, with their ends if `keeps`. */
dt_status dt_text_lines(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *text,
                        bool keeps);
/* Adds a part of a text to a list. */
void dt_text_add_part(dt_jinja_run *run, dt_jinja_value list, const dt_jinja_text *text,
                      size_t from, size_t to);
/* Puts `left` and `right` fill characters around a text; NULL: spaces. */
dt_status dt_text_fill(const dt_jinja_text **out, dt_jinja_run *run, const dt_jinja_text *text,
                       int64_t left, int64_t right, const dt_jinja_text *with);
/* Returns how many of them str.center puts at the left. */
int64_t dt_text_fill_left(int64_t width, int64_t codes);

/* --- format.c: "..." % values, and str.format */

dt_status dt_text_format_percent(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *text,
                                 dt_jinja_value values);
dt_status dt_text_format_fields(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *text,
                                const dt_jinja_call *call);

/* --- methods.c: methods of str */

/* Returns the place of a method in the table; -1: str has no such attribute. */
int dt_text_method_find(const dt_jinja_text *name);
dt_status dt_text_method_call(dt_jinja_value *out, dt_jinja_run *run, int method,
                              dt_jinja_value self, const dt_jinja_call *call);
/* --- attributes.c */

/* Gives obj.name: a method or an attribute, else the entry of a dict; else an undefined value. */
dt_status dt_value_attribute(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                             const dt_jinja_text *name);
/* Gives obj[key]: an entry or an item, else an attribute; else an undefined value. */
dt_status dt_value_item(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                        dt_jinja_value key);
/* Gives the attribute path of an item ("a.b.0"), an undefined value if it has none. `path` missing or none: the item
 * itself. */
dt_status dt_value_path(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value item,
                        dt_jinja_value path);
/* Calls a method of a value. */
dt_status dt_jinja_method_call(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value method,
                               const dt_jinja_call *call);

/* --- list_filters.c, text_filters.c: filters, each with its arguments in the order of its parameters */

typedef dt_status dt_filter_fn(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                               const dt_jinja_value *args);

dt_filter_fn dt_filter_first, dt_filter_last, dt_filter_list, dt_filter_reverse, dt_filter_sort,
    dt_filter_dictsort, dt_filter_unique, dt_filter_min, dt_filter_max, dt_filter_sum,
    dt_filter_batch, dt_filter_slice, dt_filter_groupby, dt_filter_items, dt_filter_join,
    dt_filter_length;
dt_filter_fn dt_filter_trim, dt_filter_replace, dt_filter_indent, dt_filter_truncate,
    dt_filter_wordcount, dt_filter_escape, dt_filter_center, dt_filter_urlencode, dt_filter_int,
    dt_filter_float, dt_filter_round, dt_filter_abs, dt_filter_tojson, dt_filter_string,
    dt_filter_upper, dt_filter_lower, dt_filter_title, dt_filter_capitalize, dt_filter_safe;

/* --- tests.c */

int dt_jinja_test_find(const char *name, size_t length); /* -1: none of this name */
dt_status dt_jinja_test_apply(bool *out, dt_jinja_run *run, int test, dt_jinja_value value,
                              const dt_jinja_call *call);

/* --- filters.c */

/* Returns the place in the table; -1: none of this name. */
int dt_jinja_filter_find(const char *name, size_t length);
/* Returns true if Jinja has a filter of this name, which is not supported here. */
bool dt_jinja_filter_is_known(const char *name, size_t length);
dt_status dt_jinja_filter_apply(dt_jinja_value *out, dt_jinja_run *run, int filter,
                                dt_jinja_value value, const dt_jinja_call *call);

/* --- parser: expression.c and statement.c */

typedef struct dt_jinja_parser {
    dt_jinja *jinja;
    const dt_jinja_token *token; /* the current one; the last one is DT_TOKEN_END */
    int depth;                   /* that is left */
    int loops, branches;         /* loops and ifs around the current statement */
    dt_jinja_node *macro;        /* around it; NULL: none */
    dt_error *err;
} dt_jinja_parser;

/* Records "'NAME', line N: ...", with the line of the current token; returns DT_ERR_UNSUPPORTED. */
dt_status dt_parse_fail(const dt_jinja_parser *p, const char *fmt, ...) DT_PRINTF(2, 3);
/* Fails with what is expected instead of the current token. */
dt_status dt_parse_expected(const dt_jinja_parser *p, const char *what);
bool dt_parse_is_word(const dt_jinja_parser *p, const char *word);
bool dt_parse_is_operator(const dt_jinja_parser *p, const char *sign);
/* Skip the current token if it is this one. */
bool dt_parse_skip_word(dt_jinja_parser *p, const char *word);
bool dt_parse_skip_operator(dt_jinja_parser *p, const char *sign);
dt_status dt_parse_name(dt_jinja_name *out, dt_jinja_parser *p);
dt_status dt_parse_deepen(dt_jinja_parser *p);
dt_jinja_node *dt_parse_node(dt_jinja_parser *p, dt_jinja_node_kind kind);
void dt_parse_add(dt_jinja_parser *p, dt_jinja_nodes *nodes, dt_jinja_node *node);
void dt_parse_add_keyword(dt_jinja_parser *p, dt_jinja_arguments *to, dt_jinja_name name,
                          dt_jinja_node *value);
const dt_jinja_text *dt_parse_literal(dt_jinja_parser *p);

dt_status dt_parse_expression(dt_jinja_node **out, dt_jinja_parser *p);
/* Parses one expression, or a tuple without brackets. with_if: also "a if b else c". `end`: a word that ends it. */
dt_status dt_parse_tuple(dt_jinja_node **out, dt_jinja_parser *p, bool with_if, const char *end);
/* Parses "|name(arguments)" as often as it is there. `begins`: the first one has no '|'. */
dt_status dt_parse_filters(dt_jinja_node **out, dt_jinja_parser *p, dt_jinja_node *value,
                           bool begins);
/* Parses a target of an assignment. members: also "name.attribute". */
dt_status dt_parse_target(dt_jinja_node **out, dt_jinja_parser *p, bool members);

/* --- evaluate.c: expressions */

dt_status dt_jinja_evaluate(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_node *node,
                            dt_jinja_scope *scope);
/* Evaluates a call; `caller` is MISSING, or the caller of a call block. */
dt_status dt_jinja_evaluate_call(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_node *node,
                                 dt_jinja_scope *scope, dt_jinja_value caller);
dt_jinja_variable *dt_scope_find(dt_jinja_scope *scope, dt_jinja_name name);

#endif
