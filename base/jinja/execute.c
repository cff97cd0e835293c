/* execute: renders a template: its statements, loops and macros. */
#include <string.h>

#include "base/jinja/jinja_int.h"

/* Limits of one rendering. A conversation takes some thousand steps. */
#define STEPS_MOST ((int64_t)10000000)
#define BYTES_MOST ((int64_t)256 << 20)
#define DEEPEST    500

typedef enum flow { GOES_ON, BREAKS, CONTINUES } flow;

/* The state of a block of statements: its variables, its output, and whether a loop around it is left. */
typedef struct frame {
    dt_jinja_run *run;
    dt_jinja_scope *scope;
    dt_jinja_sink *sink;
    flow flow;
} frame;

static dt_status execute_body(frame *f, const dt_jinja_nodes *body);

static dt_jinja_scope *new_scope(dt_jinja_run *run, dt_jinja_scope *parent)
{
    dt_jinja_scope *scope = dt_jinja_alloc(run, sizeof(*scope));

    scope->parent = parent;
    return scope;
}

/* Marks a scope, and those around it, as used after its statements. */
static void keep(dt_jinja_scope *scope)
{
    for (; scope != NULL && !scope->kept; scope = scope->parent)
        scope->kept = true;
}

static void set(dt_jinja_run *run, dt_jinja_scope *scope, dt_jinja_name name, dt_jinja_value value)
{
    for (int64_t i = 0; i < scope->count; i++)
        if (scope->variables[i].name == name) {
            scope->variables[i].value = value;
            return;
        }
    scope->variables = dt_jinja_room(run, scope->variables, scope->count + 1, &scope->capacity,
                                     sizeof(*scope->variables));
    scope->variables[scope->count++] = (dt_jinja_variable){name, value};
}

static dt_status assign_member(dt_jinja_run *run, dt_jinja_scope *scope,
                               const dt_jinja_node *target, dt_jinja_value value)
{
    const dt_jinja_variable *variable = dt_scope_find(scope, target->name);

    if (variable == NULL || variable->value.kind != DT_JINJA_NAMESPACE)
        return dt_jinja_fail(run, "cannot assign attribute on non-namespace object");
    if (target->attribute->data[0] == '_')
        return dt_jinja_fail(run, "a name of a namespace cannot begin with '_'");
    return dt_dict_set(run, dt_dict_of(variable->value), dt_jinja_string(target->attribute), value);
}

static dt_status assign(dt_jinja_run *run, dt_jinja_scope *scope, const dt_jinja_node *target,
                        dt_jinja_value value)
{
    const dt_jinja_list *items;
    dt_status st = DT_OK;

    if (target->kind == DT_NODE_NAME) {
        set(run, scope, target->name, value);
        return DT_OK;
    }
    if (target->kind == DT_NODE_MEMBER)
        return assign_member(run, scope, target, value);
    DT_TRY(dt_value_iterate(&items, run, value));
    if (items->count != target->items.count)
        return dt_jinja_fail(run, "cannot unpack %lld values into %lld names",
                             (long long)items->count, (long long)target->items.count);
    for (int64_t i = 0; i < items->count; i++)
        DT_TRY(assign(run, scope, target->items.items[i], items->items[i]));
out:
    return st;
}

/* Renders a body into a text of its own, in a scope of its own. */
static dt_status capture(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_scope *scope,
                         const dt_jinja_nodes *body)
{
    dt_jinja_sink sink = {.length = 0};
    frame inner = {run, scope, &sink, GOES_ON};
    dt_status st = DT_OK;

    DT_TRY(execute_body(&inner, body));
    *out = dt_jinja_string(dt_sink_text(run, &sink));
out:
    return st;
}

/* Sends a text through the filters of a block. */
static dt_status filter_block(dt_jinja_value *text, dt_jinja_run *run, const dt_jinja_node *filters,
                              dt_jinja_scope *scope)
{
    dt_jinja_value outer = run->block;
    dt_status st = DT_OK;

    run->block = *text;
    DT_TRY(dt_jinja_evaluate(text, run, filters, scope));
    run->block = outer;
out:
    return st;
}

/* --- loops */

/* Gives the items of a loop, less those that its condition leaves out. */
static dt_status loop_items(const dt_jinja_list **out, dt_jinja_run *run, const dt_jinja_node *node,
                            dt_jinja_scope *scope, dt_jinja_value from)
{
    dt_jinja_scope *inner = new_scope(run, scope);
    const dt_jinja_list *all;
    dt_jinja_value holds, kept;
    dt_status st = DT_OK;

    DT_TRY(dt_value_iterate(&all, run, from));
    *out = all;
    if (node->c == NULL)
        return DT_OK;
    kept = dt_value_list(run, DT_SHAPE_LIST, 0);
    for (int64_t i = 0; i < all->count; i++) {
        inner->count = 0;
        DT_TRY(assign(run, inner, node->a, all->items[i]));
        DT_TRY(dt_jinja_evaluate(&holds, run, node->c, inner));
        if (dt_value_truth(holds))
            dt_jinja_append(run, kept, all->items[i]);
    }
    *out = dt_list_of(kept);
out:
    return st;
}

static dt_status run_loop(frame *f, const dt_jinja_node *node, dt_jinja_value from, int64_t depth0)
{
    dt_jinja_loop *loop = dt_jinja_alloc(f->run, sizeof(*loop));
    dt_jinja_name name = dt_jinja_intern((dt_jinja *)(uintptr_t)f->run->jinja, "loop", 4, false);
    dt_jinja_scope *scope = new_scope(f->run, f->scope);
    dt_status st = DT_OK;

    *loop = (dt_jinja_loop){.node = node, .closure = f->scope, .depth0 = depth0};
    loop->changed = dt_jinja_missing();
    if (node->flag)
        keep(f->scope);
    DT_TRY(loop_items(&loop->items, f->run, node, f->scope, from));
    for (; loop->index0 < loop->items->count; loop->index0++) {
        frame inner = {f->run, scope, f->sink, GOES_ON};

        DT_TRY(dt_jinja_spend(f->run, 1));
        if (scope->kept)
            inner.scope = scope = new_scope(f->run, f->scope);
        scope->count = 0;
        if (name != NULL) /* else nothing in the template reads it */
            set(f->run, inner.scope, name,
                (dt_jinja_value){.kind = DT_JINJA_LOOP, .as.other = loop});
        DT_TRY(assign(f->run, inner.scope, node->a, loop->items->items[loop->index0]));
        DT_TRY(execute_body(&inner, &node->body));
        if (inner.flow == BREAKS)
            break;
    }
    if (loop->items->count == 0)
        DT_TRY(execute_body(f, &node->others));
out:
    return st;
}

static dt_status call_loop(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_loop *loop,
                           dt_jinja_value items)
{
    dt_jinja_sink sink = {.length = 0};
    frame inner = {run, loop->closure, &sink, GOES_ON};
    dt_status st = DT_OK;

    if (!loop->node->flag)
        return dt_jinja_fail(run, "The loop must have the 'recursive' marker to be called "
                                  "recursively.");
    DT_TRY(dt_jinja_deepen(run));
    DT_TRY(run_loop(&inner, loop->node, items, loop->depth0 + 1));
    run->depth++;
    *out = dt_jinja_string(dt_sink_text(run, &sink));
out:
    return st;
}

/* --- macros */

/* Takes a keyword argument; NULL: it was not given. */
static const dt_jinja_value *take_keyword(const dt_jinja_call *call, bool *taken,
                                          const dt_jinja_text *name)
{
    for (int64_t i = 0; i < call->keyword_count; i++)
        if (!taken[i] && dt_text_equal(dt_text_of(call->keywords[i].key), name)) {
            taken[i] = true;
            return &call->keywords[i].value;
        }
    return NULL;
}

static dt_status bind_parameters(dt_jinja_run *run, dt_jinja_scope *scope,
                                 const dt_jinja_node *node, const dt_jinja_call *call, bool *taken)
{
    const dt_jinja_arguments *params = node->arguments;
    const dt_jinja_keyword *keywords = params->keywords;
    dt_status st = DT_OK;

    for (int64_t i = 0; i < params->keyword_count; i++) {
        const dt_jinja_value *given =
            i < call->count ? &call->positional[i] : take_keyword(call, taken, keywords[i].name);
        dt_jinja_value value;

        if (given != NULL)
            value = *given;
        else if (keywords[i].value != NULL)
            DT_TRY(dt_jinja_evaluate(&value, run, keywords[i].value, scope));
        else
            value = dt_value_undefined_hint(
                run, dt_arena_printf(run->arena, "parameter '%.*s' was not provided",
                                     keywords[i].name->length < 100 ? (int)keywords[i].name->length
                                                                    : 100,
                                     keywords[i].name->data));
        set(run, scope, keywords[i].name, value);
    }
out:
    return st;
}

static void set_named(dt_jinja_run *run, dt_jinja_scope *scope, const char *name,
                      dt_jinja_value value)
{
    set(run, scope, dt_jinja_intern((dt_jinja *)(uintptr_t)run->jinja, name, strlen(name), false),
        value);
}

/* Sets `caller`, `kwargs` and `varargs`, as far as the macro reads them, and refuses what it cannot take. */
static dt_status bind_rest(dt_jinja_run *run, dt_jinja_scope *scope, const dt_jinja_node *node,
                           const dt_jinja_call *call, bool *taken)
{
    static const dt_jinja_text caller_name = {.data = "caller", .length = 6, .codes = 6};
    int64_t most = node->arguments->keyword_count;
    const char *name = node->name != NULL ? node->name->data : "caller";
    const dt_jinja_value *caller;
    dt_status st = DT_OK;
    dt_jinja_value rest;

    if (node->takes_caller) {
        caller = take_keyword(call, taken, &caller_name);
        set_named(run, scope, "caller",
                  caller != NULL ? *caller : dt_value_undefined_hint(run, "No caller defined"));
    }
    if (node->takes_keywords) {
        rest = dt_jinja_new_dict(run, DT_JINJA_TEMPLATE);
        for (int64_t i = 0; i < call->keyword_count; i++)
            if (!taken[i])
                DT_TRY(dt_dict_set(run, dt_dict_of(rest), call->keywords[i].key,
                                   call->keywords[i].value));
        set_named(run, scope, "kwargs", rest);
    }
    for (int64_t i = 0; i < call->keyword_count && !node->takes_keywords; i++)
        if (!taken[i])
            return dt_jinja_fail(run, "macro '%.100s' takes no keyword argument '%.*s'", name,
                                 dt_text_of(call->keywords[i].key)->length < 100
                                     ? (int)dt_text_of(call->keywords[i].key)->length
                                     : 100,
                                 dt_text_of(call->keywords[i].key)->data);
    if (node->takes_rest) {
        rest = dt_value_list(run, DT_SHAPE_TUPLE, 0);
        for (int64_t i = most; i < call->count; i++)
            dt_jinja_append(run, rest, call->positional[i]);
        set_named(run, scope, "varargs", rest);
    } else if (call->count > most) {
        return dt_jinja_fail(run, "macro '%.100s' takes not more than %lld argument(s)", name,
                             (long long)most);
    }
out:
    return st;
}

static dt_status call_macro(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_macro *macro,
                            const dt_jinja_call *call)
{
    dt_jinja_scope *scope = new_scope(run, macro->closure);
    bool *taken = dt_jinja_alloc(run, (size_t)call->keyword_count + 1);
    dt_status st = DT_OK;

    DT_TRY(dt_jinja_deepen(run));
    DT_TRY(bind_parameters(run, scope, macro->node, call, taken));
    DT_TRY(bind_rest(run, scope, macro->node, call, taken));
    DT_TRY(capture(out, run, scope, &macro->node->body));
    run->depth++;
out:
    return st;
}

static dt_jinja_value new_macro(dt_jinja_run *run, const dt_jinja_node *node, dt_jinja_scope *scope)
{
    dt_jinja_macro *made = dt_jinja_alloc(run, sizeof(*made));

    *made = (dt_jinja_macro){node, scope};
    keep(scope);
    return (dt_jinja_value){.kind = DT_JINJA_MACRO, .as.other = made};
}

/* --- statements */

static dt_status execute_for(frame *f, const dt_jinja_node *node)
{
    dt_jinja_value from;
    dt_status st = DT_OK;

    DT_TRY(dt_jinja_evaluate(&from, f->run, node->b, f->scope));
    DT_TRY(run_loop(f, node, from, 0));
out:
    return st;
}

static dt_status execute_if(frame *f, const dt_jinja_node *node)
{
    dt_jinja_value condition;
    dt_status st = DT_OK;

    DT_TRY(dt_jinja_evaluate(&condition, f->run, node->a, f->scope));
    DT_TRY(execute_body(f, dt_value_truth(condition) ? &node->body : &node->others));
out:
    return st;
}

static dt_status execute_print(frame *f, const dt_jinja_node *node)
{
    dt_jinja_value value;
    dt_status st = DT_OK;

    for (int64_t i = 0; i < node->items.count; i++) {
        DT_TRY(dt_jinja_evaluate(&value, f->run, node->items.items[i], f->scope));
        DT_TRY(dt_value_print(f->run, f->sink, value));
    }
out:
    return st;
}

static dt_status execute_set(frame *f, const dt_jinja_node *node)
{
    dt_jinja_value value;
    dt_status st = DT_OK;

    if (node->kind == DT_NODE_SET) {
        DT_TRY(dt_jinja_evaluate(&value, f->run, node->b, f->scope));
    } else {
        DT_TRY(capture(&value, f->run, new_scope(f->run, f->scope), &node->body));
        if (node->b != NULL)
            DT_TRY(filter_block(&value, f->run, node->b, f->scope));
    }
    DT_TRY(assign(f->run, f->scope, node->a, value));
out:
    return st;
}

static dt_status execute_with(frame *f, const dt_jinja_node *node)
{
    frame inner = {f->run, new_scope(f->run, f->scope), f->sink, GOES_ON};
    dt_jinja_value value;
    dt_status st = DT_OK;

    for (int64_t i = 0; i < node->items.count; i += 2) {
        DT_TRY(dt_jinja_evaluate(&value, f->run, node->items.items[i + 1], f->scope));
        set(f->run, inner.scope, node->items.items[i]->name, value);
    }
    DT_TRY(execute_body(&inner, &node->body));
    f->flow = inner.flow;
out:
    return st;
}

static dt_status execute_call_block(frame *f, const dt_jinja_node *node)
{
    dt_jinja_value value;
    dt_status st = DT_OK;

    DT_TRY(dt_jinja_evaluate_call(&value, f->run, node->a, f->scope,
                                  new_macro(f->run, node, f->scope)));
    DT_TRY(dt_value_print(f->run, f->sink, value));
out:
    return st;
}

static dt_status execute_filter_block(frame *f, const dt_jinja_node *node)
{
    dt_jinja_value value;
    dt_status st = DT_OK;

    DT_TRY(capture(&value, f->run, new_scope(f->run, f->scope), &node->body));
    DT_TRY(filter_block(&value, f->run, node->a, f->scope));
    DT_TRY(dt_value_print(f->run, f->sink, value));
out:
    return st;
}

static dt_status execute_generation(frame *f, const dt_jinja_node *node)
{
    frame inner = {f->run, new_scope(f->run, f->scope), f->sink, GOES_ON};
    size_t from = f->sink->length;
    dt_status st = DT_OK;

    DT_TRY(execute_body(&inner, &node->body));
    dt_sink_mark(f->run, f->sink, from, DT_JINJA_GENERATED);
out:
    return st;
}

static dt_status execute(frame *f, const dt_jinja_node *node)
{
    switch (node->kind) {
    case DT_NODE_DATA:
        return dt_value_print(f->run, f->sink, node->value);
    case DT_NODE_PRINT:
        return execute_print(f, node);
    case DT_NODE_FOR:
        return execute_for(f, node);
    case DT_NODE_IF:
        return execute_if(f, node);
    case DT_NODE_SET:
    case DT_NODE_SET_BLOCK:
        return execute_set(f, node);
    case DT_NODE_WITH:
        return execute_with(f, node);
    case DT_NODE_MACRO:
        set(f->run, f->scope, node->name, new_macro(f->run, node, f->scope));
        return DT_OK;
    case DT_NODE_CALL_BLOCK:
        return execute_call_block(f, node);
    case DT_NODE_FILTER_BLOCK:
        return execute_filter_block(f, node);
    case DT_NODE_GENERATION:
        return execute_generation(f, node);
    case DT_NODE_BREAK:
        f->flow = BREAKS;
        return DT_OK;
    case DT_NODE_CONTINUE:
        f->flow = CONTINUES;
        return DT_OK;
    default:
        DT_ASSERT(!"an expression among statements");
        return DT_OK;
    }
}

static dt_status execute_body(frame *f, const dt_jinja_nodes *body)
{
    dt_status st = DT_OK;

    if (body->count == 0)
        return DT_OK;
    DT_TRY(dt_jinja_deepen(f->run));
    for (int64_t i = 0; i < body->count && f->flow == GOES_ON; i++) {
        f->run->line = body->items[i]->line;
        DT_TRY(dt_jinja_spend(f->run, 1));
        DT_TRY(execute(f, body->items[i]));
    }
    f->run->depth++;
out:
    return st;
}

/* --- runs */

dt_jinja_run *dt_jinja_begin(const dt_jinja *jinja, int64_t now, dt_arena *arena)
{
    static const struct {
        const char *name;
        dt_jinja_function function;
    } functions[] = {{"range", DT_FUNCTION_RANGE},
                     {"dict", DT_FUNCTION_DICT},
                     {"namespace", DT_FUNCTION_NAMESPACE},
                     {"raise_exception", DT_FUNCTION_RAISE},
                     {"strftime_now", DT_FUNCTION_STRFTIME}};
    dt_jinja_run *run = dt_arena_alloc(arena, sizeof(*run));

    *run = (dt_jinja_run){.jinja = jinja,
                          .arena = arena,
                          .now = now,
                          .steps = STEPS_MOST,
                          .bytes = BYTES_MOST,
                          .depth = DEEPEST,
                          .call_macro = call_macro,
                          .call_loop = call_loop};
    run->block = dt_jinja_none();
    run->globals = new_scope(run, NULL);
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        dt_jinja_set(
            run, functions[i].name,
            (dt_jinja_value){.kind = DT_JINJA_FUNCTION, .shape = (uint8_t)functions[i].function});
    return run;
}

void dt_jinja_set(dt_jinja_run *run, const char *name, dt_jinja_value value)
{
    dt_jinja_name known =
        dt_jinja_intern((dt_jinja *)(uintptr_t)run->jinja, name, strlen(name), false);

    if (known != NULL) /* else the template does not read it */
        set(run, run->globals, known, value);
}

dt_status dt_jinja_render(dt_jinja_output *out, dt_jinja_run *run, dt_error *err)
{
    dt_jinja_sink sink = {.length = 0};
    frame f = {run, new_scope(run, run->globals), &sink, GOES_ON};
    dt_status st = DT_OK;
    size_t count = 0;

    *out = (dt_jinja_output){.text = ""};
    run->err = err;
    DT_TRY(execute_body(&f, &run->jinja->body));
    if (sink.length == 0)
        goto out;
    for (size_t i = 0; i < sink.piece_count; i++) {
        if (count > 0 && sink.pieces[count - 1].origin == sink.pieces[i].origin)
            sink.pieces[count - 1].end = sink.pieces[i].end;
        else
            sink.pieces[count++] = sink.pieces[i];
    }
    sink.data = dt_jinja_room(run, sink.data, (int64_t)sink.length + 1, &sink.capacity, 1);
    sink.data[sink.length] = '\0';
    *out = (dt_jinja_output){sink.data, sink.length, sink.pieces, count};
out:
    run->err = NULL;
    return st;
}
