/* forms: the rows of published benchmarks, and the rows of tasks that are made of them, by one table. */
#include <ctype.h>
#include <string.h>

#include "engine/evaluation/evaluation.h"
#include "runner/benchmarks/benchmarks.h"

enum { HELLASWAG, ARC, PIQA, MMLU, GSM8K, GSM8K_FLEXIBLE, FORMS };

enum { LETTERS = 4, TEXTS_MOST = 4 }; /* LETTERS: choices of MMLU */

const char *const dt_benchmark_names[FORMS + 1] = {
    [HELLASWAG] = "hellaswag", [ARC] = "arc",     [PIQA] = "piqa",
    [MMLU] = "mmlu",           [GSM8K] = "gsm8k", [GSM8K_FLEXIBLE] = "gsm8k-flexible",
};

/* A row on its way. */
typedef struct conversion {
    json_t *from, *to;
    const char *where;
    const char *unlabelled; /* what to do about a row without a right choice */
    dt_converted *counts;
    dt_error *err;
} conversion;

typedef dt_status convert_fn(conversion *c);

typedef struct benchmark {
    const char *texts[TEXTS_MOST]; /* fields that must be text */
    const char *prompt;            /* Jinja; its variables are the fields */
    const char *id;                /* field that becomes `id`; NULL: none */
    const char *defaults;          /* JSON; NULL: none */
    const char *unlabelled;
    convert_fn *arrange; /* MAY: moves fields to where the others expect them */
    convert_fn *add;     /* adds choices and answer */
    bool clean;          /* remove the marks of WikiHow from prompt and choices */
    bool csv;            /* can be a .csv of question, four choices and the answer */
} benchmark;

static convert_fn arrange_arc, arrange_mmlu, add_hellaswag, add_arc, add_piqa, add_mmlu, add_gsm8k;

#define QUESTION "{{ 'Question: ' ~ question ~ '\\nAnswer:' }}"
/* Texts before which a generated answer ends: the model would go on with another question. */
#define GSM8K_DEFAULTS(extract)                                            \
    "{\"until\": [\"Question:\", \"</s>\", \"<|im_end|>\"], " extract ", " \
    "\"ignore_case\": true, \"remove\": [\",\", \"\\\\$\", \"\\\\.$\"]}"

static const benchmark forms[FORMS] = {
    [HELLASWAG] = {.texts = {"activity_label", "ctx_a", "ctx_b"},
                   .prompt = "{{ activity_label ~ ': ' ~ ctx_a ~ ' ' ~ ctx_b.capitalize() }}",
                   .id = "ind",
                   .unlabelled = "the test file has no labels: use the one of validation",
                   .add = add_hellaswag,
                   .clean = true},
    [ARC] = {.texts = {"question"},
             .prompt = QUESTION,
             .id = "id",
             .unlabelled = "it names the right one of 'choices'",
             .arrange = arrange_arc,
             .add = add_arc},
    [PIQA] = {.texts = {"goal", "sol1", "sol2"},
              .prompt = "{{ 'Question: ' ~ goal ~ '\\nAnswer:' }}",
              .id = "id",
              .unlabelled = "add the labels, which PIQA has in a file of their own, to the rows "
                            "(docs/evaluation.md has the command)",
              .add = add_piqa},
    /* the sentence is part of MMLU's published form: another one gives other numbers */
    [MMLU] = {.texts = {"question"},
              .prompt = "{{ 'The following are multiple choice questions (with answers) about ' ~ "
                        "subject.replace('_', ' ') ~ '.\\n\\n' if subject is defined else '' }}"
                        "{{ question.strip() ~ '\\nA. ' ~ choices[0] ~ '\\nB. ' ~ choices[1] ~ "
                        "'\\nC. ' ~ choices[2] ~ '\\nD. ' ~ choices[3] ~ '\\nAnswer:' }}",
              .id = "id",
              .unlabelled = "it is the index or the letter of the right choice",
              .arrange = arrange_mmlu,
              .add = add_mmlu,
              .csv = true},
    [GSM8K] = {.texts = {"question", "answer"},
               .prompt = QUESTION,
               .id = "id",
               .defaults = GSM8K_DEFAULTS("\"extract\": \"#### (-?[0-9.,]+)\""),
               .add = add_gsm8k},
    /* the last number of the text, instead of the first after '#### ' */
    [GSM8K_FLEXIBLE] = {.texts = {"question", "answer"},
                        .prompt = QUESTION,
                        .id = "id",
                        .defaults = GSM8K_DEFAULTS("\"extract\": \"(-?[$0-9.,]{2,})|(-?[0-9]+)\", "
                                                   "\"extract_last\": true"),
                        .add = add_gsm8k},
};

const char *dt_benchmark_defaults(int form)
{
    return forms[form].defaults;
}

bool dt_benchmark_has_csv(int form)
{
    return forms[form].csv;
}

dt_status dt_benchmark_template(dt_jinja **out, int form, dt_error *err)
{
    return dt_jinja_parse(out, forms[form].prompt, strlen(forms[form].prompt),
                          dt_benchmark_names[form], err);
}

/* --- parts of rows */

static dt_status refuse(const conversion *c, const char *field, const char *expected)
{
    return json_object_get(c->from, field) == NULL
               ? DT_FAIL(c->err, DT_ERR_USAGE, "%s: '%s' is missing (expected %s)", c->where, field,
                         expected)
               : DT_FAIL(c->err, DT_ERR_USAGE, "%s: '%s': expected %s", c->where, field, expected);
}

static void replace(dt_strbuf *io, const char *part, const char *by)
{
    size_t length = strlen(part);
    dt_strbuf made;

    dt_strbuf_init(&made);
    for (const char *at = io->data, *next; at != NULL; at = next) {
        next = strstr(at, part);
        dt_strbuf_add(&made, at, next != NULL ? (size_t)(next - at) : strlen(at));
        if (next != NULL) {
            dt_strbuf_add_str(&made, by);
            next += length;
        }
    }
    dt_strbuf_release(io);
    *io = made;
}

static void remove_brackets(dt_strbuf *io)
{
    const char *at = io->data, *close;
    dt_strbuf made;

    dt_strbuf_init(&made);
    while (*at != '\0') {
        close = *at == '[' ? at + strcspn(at, "]\n") : "";
        if (*close == ']')
            at = close + 1;
        else
            dt_strbuf_add_char(&made, *at++);
    }
    dt_strbuf_release(io);
    *io = made;
}

/* A copy of `text` without the marks of WikiHow. New reference. */
static json_t *cleaned(const char *text)
{
    dt_strbuf clean;
    json_t *out;

    dt_strbuf_init(&clean);
    dt_evaluation_add_stripped(&clean, text, strlen(text));
    replace(&clean, " [title]", ". ");
    remove_brackets(&clean);
    replace(&clean, "  ", " ");
    out = json_stringn(clean.data, clean.length);
    dt_strbuf_release(&clean);
    return out;
}

/* Adds a choice, or refuses it. */
static dt_status add_choice(conversion *c, const json_t *value, bool clean, const char *field)
{
    const char *text = json_string_value(value);
    json_t *choice;

    if (text == NULL)
        return refuse(c, field, "text");
    choice = clean ? cleaned(text) : json_string(text);
    json_array_append_new(json_object_get(c->to, "choices"), choice);
    return json_string_length(choice) > 0
               ? DT_OK
               : DT_FAIL(c->err, DT_ERR_USAGE, "%s: '%s': the text of a choice is empty", c->where,
                         field);
}

static dt_status add_list(conversion *c, const json_t *list, bool clean, const char *field)
{
    dt_status st = DT_OK;

    if (!json_is_array(list) || json_array_size(list) < 2)
        return refuse(c, field, "a list of two or more texts");
    for (size_t i = 0; i < json_array_size(list) && st == DT_OK; i++)
        st = add_choice(c, json_array_get(list, i), clean, field);
    return st;
}

/* Returns the number that a whole number or a text of digits is; -1: another value. */
static json_int_t number_of(const json_t *value)
{
    const char *text = json_string_value(value);

    if (json_is_integer(value))
        return json_integer_value(value);
    if (text == NULL || strlen(text) != 1 || !isdigit((unsigned char)text[0]))
        return -1;
    return text[0] - '0';
}

static dt_status refuse_label(const conversion *c, const char *field, const char *expected)
{
    const json_t *value = json_object_get(c->from, field);
    bool none = value == NULL || json_is_null(value) ||
                (json_is_string(value) && json_string_length(value) == 0) ||
                (json_is_integer(value) && json_integer_value(value) == -1);

    return none ? DT_FAIL(c->err, DT_ERR_USAGE, "%s: '%s' is missing, empty or -1: %s", c->where,
                          field, c->unlabelled)
                : refuse(c, field, expected);
}

/* Adds the index of the right choice. letters: or its letter. */
static dt_status add_index(conversion *c, const char *field, size_t count, bool letters)
{
    const json_t *value = json_object_get(c->from, field);
    const char *text = json_string_value(value);
    json_int_t index = number_of(value);
    char expected[64];

    if (letters && text != NULL && text[0] >= 'A' && text[0] < 'A' + (int)count && text[1] == '\0')
        index = text[0] - 'A';
    if (index >= 0 && index < (json_int_t)count) {
        json_object_set_new(c->to, "answer", json_integer(index));
        return DT_OK;
    }
    snprintf(expected, sizeof(expected), letters ? "A to %c, or 0 to %zu" : "%c to %zu",
             letters ? 'A' + (int)count - 1 : '0', count - 1);
    return refuse_label(c, field, expected);
}

/* --- each benchmark */

static dt_status add_hellaswag(conversion *c)
{
    const json_t *endings = json_object_get(c->from, "endings");
    dt_status st = add_list(c, endings, true, "endings");

    return st == DT_OK ? add_index(c, "label", json_array_size(endings), false) : st;
}

/* {"question": {"stem", "choices"}} has what others have as question and choices. */
static dt_status arrange_arc(conversion *c)
{
    json_t *question = json_incref(json_object_get(c->from, "question"));

    if (json_is_object(question)) {
        json_object_set(c->from, "choices", json_object_get(question, "choices"));
        json_object_set(c->from, "question", json_object_get(question, "stem"));
    }
    json_decref(question);
    return DT_OK;
}

static bool is_label(const json_t *label, const json_t *key)
{
    return json_equal(label, key) || (number_of(key) >= 0 && number_of(label) == number_of(key));
}

/* choices: {"text": [...], "label": [...]}, or a list of {"text", "label"}. */
static dt_status add_arc(conversion *c)
{
    const json_t *choices = json_object_get(c->from, "choices"), *label, *text;
    const json_t *texts = json_object_get(choices, "text"), *labels;
    const json_t *key = json_object_get(c->from, "answerKey");
    bool columns = json_is_object(choices);
    size_t count = json_array_size(columns ? texts : choices), right = count;
    dt_status st = DT_OK;

    labels = json_object_get(choices, "label");
    if (count < 2 || (columns && json_array_size(labels) != count))
        return refuse(c, "choices",
                      "{\"text\": [...], \"label\": [...]}, or a list of {\"text\", \"label\"}");
    for (size_t i = 0; i < count && st == DT_OK; i++) {
        const json_t *item = columns ? NULL : json_array_get(choices, i);

        text = columns ? json_array_get(texts, i) : json_object_get(item, "text");
        label = columns ? json_array_get(labels, i) : json_object_get(item, "label");
        st = add_choice(c, text, false, "choices");
        if (right == count && label != NULL && is_label(label, key))
            right = i;
    }
    if (st == DT_OK && right == count)
        return refuse_label(c, "answerKey", "the label of one of the choices");
    json_object_set_new(c->to, "answer", json_integer((json_int_t)right));
    return st;
}

static dt_status add_piqa(conversion *c)
{
    dt_status st = add_choice(c, json_object_get(c->from, "sol1"), false, "sol1");

    if (st == DT_OK)
        st = add_choice(c, json_object_get(c->from, "sol2"), false, "sol2");
    return st == DT_OK ? add_index(c, "label", 2, false) : st;
}

static dt_status arrange_mmlu(conversion *c)
{
    const json_t *choices = json_object_get(c->from, "choices");
    const json_t *subject = json_object_get(c->from, "subject");

    if (subject != NULL && !json_is_null(subject) && !json_is_string(subject))
        return refuse(c, "subject", "text");
    if (json_string_length(subject) == 0) {
        json_object_del(c->from, "subject");
        c->counts->unnamed++;
    }
    for (size_t i = 0; i < LETTERS; i++)
        if (json_array_size(choices) != LETTERS || !json_is_string(json_array_get(choices, i)))
            return refuse(c, "choices", "a list of four texts");
    return DT_OK;
}

static dt_status add_mmlu(conversion *c)
{
    json_t *letters = json_object_get(c->to, "choices");

    for (char letter = 'A'; letter < 'A' + LETTERS; letter++)
        json_array_append_new(letters, json_stringn(&letter, 1));
    return add_index(c, "answer", LETTERS, true);
}

static dt_status add_gsm8k(conversion *c)
{
    static const char mark[] = "#### ";
    const char *at = json_string_value(json_object_get(c->from, "answer")), *last = NULL;

    while ((at = strstr(at, mark)) != NULL) {
        at += sizeof(mark) - 1;
        last = at;
    }
    if (last == NULL || *last == '\0')
        return refuse(c, "answer", "text that ends in '#### ' and the right number");
    json_object_del(c->to, "choices");
    json_object_set_new(c->to, "answer", json_string(last));
    return DT_OK;
}

/* --- a row */

static dt_status add_prompt(conversion *c, const dt_jinja *prompt, bool clean, dt_arena *arena)
{
    dt_jinja_run *run = dt_jinja_begin(prompt, 0, arena);
    dt_jinja_output output;
    dt_status st = DT_OK;
    const char *name;
    json_t *value;

    json_object_foreach(c->from, name, value) {
        dt_jinja_set(run, name, dt_jinja_from_json(run, value, 1));
    }
    st = dt_jinja_render(&output, run, c->err);
    if (st != DT_OK) {
        dt_error_prefix(c->err, "%s", c->where);
        return st;
    }
    json_object_set_new(c->to, "prompt",
                        clean ? cleaned(output.text) : json_stringn(output.text, output.length));
    return DT_OK;
}

dt_status dt_benchmark_row(json_t **out, dt_converted *counts, int form, const dt_jinja *prompt,
                           json_t *row, const char *where, dt_arena *arena, dt_error *err)
{
    const benchmark *f = &forms[form];
    conversion c = {row, json_object(), where, f->unlabelled, counts, err};
    dt_evaluation_row checked;
    dt_status st = DT_OK;

    *out = NULL;
    if (!json_is_object(row))
        DT_THROW(err, DT_ERR_USAGE, "%s: expected a JSON object", where);
    if (f->arrange != NULL)
        DT_TRY(f->arrange(&c));
    for (size_t i = 0; i < TEXTS_MOST && f->texts[i] != NULL; i++)
        if (!json_is_string(json_object_get(row, f->texts[i])))
            DT_TRY(refuse(&c, f->texts[i], "text"));
    DT_TRY(add_prompt(&c, prompt, f->clean, arena));
    json_object_set_new(c.to, "choices", json_array());
    DT_TRY(f->add(&c));
    if (f->id != NULL && json_object_get(row, f->id) != NULL)
        json_object_set(c.to, "id", json_object_get(row, f->id));
    DT_TRY(dt_evaluation_row_read(&checked, c.to, where, arena, err));
    *out = json_incref(c.to);
    counts->rows++;
out:
    json_decref(c.to);
    return st;
}
