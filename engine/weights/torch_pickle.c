#include <string.h>

#include "base/display.h"
#include "engine/weights/torch_int.h"

#define VALUES_MOST ((int64_t)4 << 20) /* 25 a tensor are usual */
#define SAVE_AGAIN  "save the model as safetensors"

typedef struct machine {
    const unsigned char *at, *end;
    const char *path;
    dt_arena *arena;
    dt_error *err;
    dt_pickle_value **stack, **memo;
    int64_t count, room, memo_room, memo_count, values;
    int64_t *marks; /* heights of the stack */
    int64_t mark_count, mark_room;
} machine;

/* --- the program */

static dt_status refuse_damage(const machine *m)
{
    return DT_FAIL(m->err, DT_ERR_CORRUPT, "'%s': its list of tensors is damaged", m->path);
}

/* Reads a little-endian number of `bytes` bytes. */
static dt_status read_number(uint64_t *out, machine *m, size_t bytes)
{
    *out = 0;
    if ((size_t)(m->end - m->at) < bytes)
        return refuse_damage(m);
    for (size_t i = 0; i < bytes; i++)
        *out |= (uint64_t)m->at[i] << 8 * i;
    m->at += bytes;
    return DT_OK;
}

/* Copies text of this length. Names of tensors are compared and shown: they have no NUL and are UTF-8. */
static dt_status read_text(const char **out, machine *m, uint64_t length)
{
    if (length > (uint64_t)(m->end - m->at) ||
        dt_utf8_valid_length((const char *)m->at, (size_t)length) != length ||
        memchr(m->at, '\0', (size_t)length) != NULL)
        return refuse_damage(m);
    *out = dt_arena_strndup(m->arena, (const char *)m->at, (size_t)length);
    m->at += length;
    return DT_OK;
}

/* Reads text up to the end of the line. */
static dt_status read_line(const char **out, machine *m)
{
    const unsigned char *stop = memchr(m->at, '\n', (size_t)(m->end - m->at));
    dt_status st = stop != NULL ? read_text(out, m, (uint64_t)(stop - m->at)) : refuse_damage(m);

    m->at += st == DT_OK;
    return st;
}

/* --- the stack */

static dt_status push(machine *m, dt_pickle_value *value)
{
    m->stack = dt_arena_array_room(m->arena, m->stack, m->count + 1, &m->room, sizeof(*m->stack));
    m->stack[m->count++] = value;
    return DT_OK;
}

static dt_status push_new(dt_pickle_value **out, machine *m, dt_pickle_kind kind)
{
    dt_pickle_value *made;

    if (++m->values > VALUES_MOST)
        return DT_FAIL(m->err, DT_ERR_RECIPE, "'%s' lists too many values; " SAVE_AGAIN, m->path);
    made = dt_arena_alloc(m->arena, sizeof(*made));
    *made = (dt_pickle_value){.kind = kind};
    *out = made;
    return push(m, made);
}

/* Height below which the values belong to what is outside the last mark. */
static int64_t base_of(const machine *m)
{
    return m->mark_count > 0 ? m->marks[m->mark_count - 1] : 0;
}

static dt_status pop(dt_pickle_value **out, machine *m)
{
    if (m->count <= base_of(m))
        return refuse_damage(m);
    *out = m->stack[--m->count];
    return DT_OK;
}

/* The value on top, which must be of this kind. */
static dt_status top(dt_pickle_value **out, machine *m, dt_pickle_kind kind)
{
    if (m->count <= base_of(m) || m->stack[m->count - 1]->kind != kind)
        return refuse_damage(m);
    *out = m->stack[m->count - 1];
    return DT_OK;
}

static dt_status push_mark(machine *m)
{
    if (++m->values > VALUES_MOST)
        return refuse_damage(m);
    m->marks = dt_arena_array_room(m->arena, m->marks, m->mark_count + 1, &m->mark_room,
                                   sizeof(*m->marks));
    m->marks[m->mark_count++] = m->count;
    return DT_OK;
}

/* Removes the last mark. *from: the height of the values after it, which stay on the stack. */
static dt_status pop_mark(int64_t *from, machine *m)
{
    if (m->mark_count == 0)
        return refuse_damage(m);
    *from = m->marks[--m->mark_count];
    return DT_OK;
}

/* Moves the values from height `from` on to the end of a list or dictionary. */
static void append(machine *m, dt_pickle_value *to, int64_t from)
{
    for (int64_t i = from; i < m->count; i++) {
        to->items =
            dt_arena_array_room(m->arena, to->items, to->count + 1, &to->room, sizeof(*to->items));
        to->items[to->count++] = m->stack[i];
    }
    m->count = from;
}

static dt_status make_tuple(machine *m, int64_t from)
{
    dt_pickle_value *list;
    dt_status st = DT_OK;

    if (from < base_of(m) || from > m->count)
        return refuse_damage(m);
    DT_TRY(push_new(&list, m, DT_PICKLE_LIST));
    m->count--;
    append(m, list, from);
    DT_TRY(push(m, list));
out:
    return st;
}

/* Moves the values after the last mark into the value below it. */
static dt_status fill(machine *m, dt_pickle_kind kind)
{
    dt_pickle_value *to;
    dt_status st = DT_OK;
    int64_t from = 0;

    DT_TRY(pop_mark(&from, m));
    if (from <= base_of(m) || m->stack[from - 1]->kind != kind ||
        (kind == DT_PICKLE_DICT && (m->count - from) % 2 != 0))
        return refuse_damage(m);
    to = m->stack[from - 1];
    append(m, to, from);
out:
    return st;
}

/* --- the memory */

static dt_status memorize(machine *m, uint64_t index)
{
    if (m->count <= base_of(m) || index >= (uint64_t)VALUES_MOST)
        return refuse_damage(m);
    m->memo = dt_arena_array_room(m->arena, m->memo, (int64_t)index + 1, &m->memo_room,
                                  sizeof(*m->memo)); /* new ones are NULL */
    m->memo[index] = m->stack[m->count - 1];
    m->memo_count = (int64_t)index + 1 > m->memo_count ? (int64_t)index + 1 : m->memo_count;
    return DT_OK;
}

static dt_status remember(machine *m, uint64_t index)
{
    if (index >= (uint64_t)m->memo_room || m->memo[index] == NULL)
        return refuse_damage(m);
    return push(m, m->memo[index]);
}

/* --- functions */

static bool is_list(const dt_pickle_value *value, int64_t least)
{
    return value->kind == DT_PICKLE_LIST && value->count >= least;
}

static dt_status make_storage(machine *m)
{
    dt_pickle_value *id = NULL, *storage, **part;
    dt_status st = DT_OK;

    DT_TRY(pop(&id, m));
    part = id->items;
    if (!is_list(id, 5) || part[0]->kind != DT_PICKLE_TEXT ||
        strcmp(part[0]->text, "storage") != 0 || part[1]->kind != DT_PICKLE_GLOBAL ||
        part[2]->kind != DT_PICKLE_TEXT || part[4]->kind != DT_PICKLE_NUMBER)
        return refuse_damage(m);
    DT_TRY(push_new(&storage, m, DT_PICKLE_STORAGE));
    storage->type = strncmp(part[1]->text, "torch ", 6) == 0 ? part[1]->text + 6 : part[1]->text;
    storage->text = part[2]->text;
    storage->number = part[4]->number;
out:
    return st;
}

static bool are_numbers(const dt_pickle_value *list)
{
    bool numbers = list->kind == DT_PICKLE_LIST;

    for (int64_t i = 0; numbers && i < list->count; i++)
        numbers = list->items[i]->kind == DT_PICKLE_NUMBER && list->items[i]->number >= 0;
    return numbers;
}

/* _rebuild_tensor_v2(storage, first, sizes, strides, ...) */
static dt_status make_tensor(machine *m, dt_pickle_value *arguments)
{
    dt_pickle_value **part = arguments->items, *tensor;
    dt_status st = DT_OK;

    if (!is_list(arguments, 4) || part[0]->kind != DT_PICKLE_STORAGE ||
        part[1]->kind != DT_PICKLE_NUMBER || !are_numbers(part[2]) || !are_numbers(part[3]) ||
        part[2]->count != part[3]->count)
        return refuse_damage(m);
    DT_TRY(push_new(&tensor, m, DT_PICKLE_TENSOR));
    tensor->number = part[1]->number;
    tensor->items = dt_arena_alloc_array(m->arena, 3, sizeof(*tensor->items));
    tensor->items[0] = part[0];
    tensor->items[1] = part[2];
    tensor->items[2] = part[3];
    tensor->count = 3;
out:
    return st;
}

static dt_status call(machine *m)
{
    dt_pickle_value *arguments = NULL, *function = NULL, *made;
    dt_status st = DT_OK;

    DT_TRY(pop(&arguments, m));
    DT_TRY(pop(&function, m));
    if (function->kind != DT_PICKLE_GLOBAL || arguments->kind != DT_PICKLE_LIST)
        return refuse_damage(m);
    if (strcmp(function->text, "torch._utils _rebuild_tensor_v2") == 0)
        return make_tensor(m, arguments);
    if (strcmp(function->text, "torch._utils _rebuild_parameter") == 0 && is_list(arguments, 1) &&
        arguments->items[0]->kind == DT_PICKLE_TENSOR)
        return push(m, arguments->items[0]);
    if (strcmp(function->text, "collections OrderedDict") == 0 && arguments->count == 0)
        return push_new(&made, m, DT_PICKLE_DICT);
    DT_THROW(m->err, DT_ERR_RECIPE, "'%s' calls '%.120s', which dtrun does not run: " SAVE_AGAIN,
             m->path, function->text);
out:
    return st;
}

static dt_status push_global(machine *m, const char *module, const char *name)
{
    dt_pickle_value *made;
    dt_status st = push_new(&made, m, DT_PICKLE_GLOBAL);

    if (st == DT_OK)
        made->text = dt_arena_printf(m->arena, "%s %s", module, name);
    return st;
}

static dt_status global_of_stack(machine *m)
{
    dt_pickle_value *name = NULL, *module = NULL;
    dt_status st = DT_OK;

    DT_TRY(pop(&name, m));
    DT_TRY(pop(&module, m));
    if (name->kind != DT_PICKLE_TEXT || module->kind != DT_PICKLE_TEXT)
        return refuse_damage(m);
    DT_TRY(push_global(m, module->text, name->text));
out:
    return st;
}

/* Sets attributes: of dictionaries '_metadata', which no tensor needs. */
static dt_status build(machine *m)
{
    dt_pickle_value *state, *of;
    dt_status st = DT_OK;

    DT_TRY(pop(&state, m));
    DT_TRY(top(&of, m, DT_PICKLE_DICT));
out:
    return st;
}

/* --- the instructions */

static dt_status push_number(machine *m, int64_t number)
{
    dt_pickle_value *made;
    dt_status st = push_new(&made, m, DT_PICKLE_NUMBER);

    if (st == DT_OK)
        made->number = number;
    return st;
}

static dt_status push_text(machine *m, size_t length_bytes)
{
    dt_pickle_value *made;
    dt_status st = DT_OK;
    uint64_t length;

    DT_TRY(read_number(&length, m, length_bytes));
    DT_TRY(push_new(&made, m, DT_PICKLE_TEXT));
    DT_TRY(read_text(&made->text, m, length));
out:
    return st;
}

/* A number of 0 to 8 bytes with a sign. */
static dt_status push_long(machine *m)
{
    uint64_t length, number;
    dt_status st = DT_OK;

    DT_TRY(read_number(&length, m, 1));
    if (length > 8)
        return refuse_damage(m);
    DT_TRY(read_number(&number, m, length));
    if (length > 0 && length < 8 && (number >> (8 * length - 1) & 1) != 0)
        number |= ~(uint64_t)0 << 8 * length;
    DT_TRY(push_number(m, (int64_t)number));
out:
    return st;
}

/* An instruction that pushes a constant. Returns false in *known for another one. */
static dt_status push_constant(bool *known, machine *m, unsigned char code)
{
    dt_pickle_value *made;
    dt_status st = DT_OK;
    uint64_t number;

    *known = true;
    switch (code) {
    case '}':
        return push_new(&made, m, DT_PICKLE_DICT);
    case ']':
    case ')':
        return push_new(&made, m, DT_PICKLE_LIST);
    case 'N':
        return push_new(&made, m, DT_PICKLE_NONE);
    case 0x88:
    case 0x89:
        return push_number(m, code == 0x88);
    case 'J':
        DT_TRY(read_number(&number, m, 4));
        return push_number(m, (int32_t)(uint32_t)number);
    case 'K':
    case 'M':
        DT_TRY(read_number(&number, m, code == 'K' ? 1 : 2));
        return push_number(m, (int64_t)number);
    case 0x8a:
        return push_long(m);
    case 'G':
        DT_TRY(read_number(&number, m, 8));
        return push_new(&made, m, DT_PICKLE_FLOAT);
    case 'X':
    case 'T':
        return push_text(m, 4);
    case 'U':
    case 0x8c:
        return push_text(m, 1);
    case 0x8d:
        return push_text(m, 8);
    default:
        *known = false;
    }
out:
    return st;
}

/* Sets one entry: the key and the value are on top of the dictionary. */
static dt_status set_item(machine *m, dt_pickle_kind kind, int64_t count)
{
    int64_t from = m->count - count;

    if (from <= base_of(m) || m->stack[from - 1]->kind != kind)
        return refuse_damage(m);
    append(m, m->stack[from - 1], from);
    return DT_OK;
}

static dt_status step(machine *m, unsigned char code)
{
    const char *module, *name;
    dt_pickle_value *value;
    dt_status st = DT_OK;
    uint64_t number;
    int64_t from = 0;
    bool known;

    DT_TRY(push_constant(&known, m, code));
    if (known)
        goto out;
    switch (code) {
    case 0x80: /* protocol */
        return read_number(&number, m, 1);
    case 0x95: /* frame */
        return read_number(&number, m, 8);
    case '(':
        return push_mark(m);
    case '0':
        return pop(&value, m);
    case '1':
        DT_TRY(pop_mark(&from, m));
        m->count = from;
        break;
    case 'c':
        DT_TRY(read_line(&module, m));
        DT_TRY(read_line(&name, m));
        return push_global(m, module, name);
    case 0x93:
        return global_of_stack(m);
    case 'q':
    case 'r':
        DT_TRY(read_number(&number, m, code == 'q' ? 1 : 4));
        return memorize(m, number);
    case 0x94:
        return memorize(m, (uint64_t)m->memo_count);
    case 'h':
    case 'j':
        DT_TRY(read_number(&number, m, code == 'h' ? 1 : 4));
        return remember(m, number);
    case 't':
        DT_TRY(pop_mark(&from, m));
        return make_tuple(m, from);
    case 0x85:
    case 0x86:
    case 0x87:
        return make_tuple(m, m->count - (code - 0x84));
    case 'R':
        return call(m);
    case 'b':
        return build(m);
    case 's':
        return set_item(m, DT_PICKLE_DICT, 2);
    case 'u':
        return fill(m, DT_PICKLE_DICT);
    case 'a':
        return set_item(m, DT_PICKLE_LIST, 1);
    case 'e':
        return fill(m, DT_PICKLE_LIST);
    case 'Q':
        return make_storage(m);
    default:
        DT_THROW(m->err, DT_ERR_RECIPE,
                 "'%s' has the pickle instruction 0x%02x, which lists of tensors do not "
                 "have; " SAVE_AGAIN,
                 m->path, code);
    }
out:
    return st;
}

dt_status dt_pickle_read(const dt_pickle_value **out, const unsigned char *bytes, size_t length,
                         const char *path, dt_arena *arena, dt_error *err)
{
    machine m = {.at = bytes, .end = bytes + length, .path = path, .arena = arena, .err = err};
    dt_status st = DT_OK;

    while (m.at < m.end && *m.at != '.')
        DT_TRY(step(&m, *m.at++));
    if (m.at == m.end || m.count != 1 || m.mark_count != 0)
        return refuse_damage(&m);
    *out = m.stack[0];
out:
    return st;
}
