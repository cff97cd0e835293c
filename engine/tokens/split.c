#include "engine/tokens/split.h"

#include <string.h>

#include "base/strbuf.h"
#include "engine/tokens/tokens_int.h"

typedef const unsigned char *place;

#define N3 "\\p{N}{1,3}"
#define N1 "\\p{N}"
#define LATER(numbers)                                                    \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

#define MARKED                                                                  \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}" \
    "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

#define O200K_BEFORE "[^\\r\\n\\p{L}\\p{N}]?"
#define O200K_UPPER  "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define O200K_LOWER  "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CONTRACTION  "(?i:'s|'t|'re|'ve|'m|'ll|'d)"

static const struct {
    const char *expression;
    dt_split_kind kind;
} known[] = {
    {"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
     DT_SPLIT_GPT2},
    {LATER(N3), DT_SPLIT_LLAMA3},
    {LATER(N1), DT_SPLIT_QWEN},
    {MARKED, DT_SPLIT_QWEN35},
    {O200K_BEFORE O200K_UPPER "*" O200K_LOWER "+|" O200K_BEFORE O200K_UPPER "+" O200K_LOWER
                              "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|"
                              "\\s+(?!\\S)|\\s+",
     DT_SPLIT_TEKKEN},
    {O200K_BEFORE O200K_UPPER "*" O200K_LOWER "+" CONTRACTION "?|" O200K_BEFORE O200K_UPPER
                              "+" O200K_LOWER "*" CONTRACTION "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+"
                              "[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     DT_SPLIT_O200K},
    {"[!\"#$%&'()*+,\\-./"
     ":;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
     "?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     DT_SPLIT_DEEPSEEK},
};

#define KNOWN (sizeof(known) / sizeof(known[0]))

const char *dt_split_expression(dt_split_kind kind)
{
    for (size_t i = 0; i < KNOWN; i++)
        if (known[i].kind == kind)
            return known[i].expression;
    return NULL;
}

dt_status dt_split_add_kind(dt_split *split, dt_split_kind kind, dt_error *err)
{
    if (split->count == DT_SPLIT_STAGES)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                       "more than %d stages of Split, Digits and ByteLevel are not supported",
                       DT_SPLIT_STAGES);
    split->stages[split->count++].kind = kind;
    return DT_OK;
}

static bool splits_lines(const dt_split *split)
{
    for (int i = 0; i < split->count; i++)
        if (split->stages[i].kind == DT_SPLIT_SET &&
            dt_split_set_is_line_break(&split->stages[i].set))
            return true;
    return false;
}

/* Files spell line breaks in the expression literally or escaped, so literal ones are escaped
 * before the comparison. "$" also matches before a line break at the end; it is supported only
 * after a stage that isolates line breaks, because then no piece ends with one. */
dt_status dt_split_add(dt_split *split, dt_arena *arena, const char *expression, dt_error *err)
{
    dt_status st = DT_OK;
    dt_split_set set;
    dt_strbuf plain;

    dt_strbuf_init(&plain);
    for (const char *at = expression; *at != '\0'; at++)
        if (at[0] == '\r' || at[0] == '\n')
            dt_strbuf_add_str(&plain, at[0] == '\r' ? "\\r" : "\\n");
        else
            dt_strbuf_add_char(&plain, at[0]);
    for (size_t i = 0; i < KNOWN; i++)
        if (strcmp(known[i].expression, plain.data) == 0) {
            DT_TRY(dt_split_add_kind(split, known[i].kind, err));
            goto out;
        }
    if (!dt_split_set_parse(&set, arena, expression) || (set.at_end && !splits_lines(split)))
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "unsupported pattern of Split '%.200s' (expected that of GPT-2, Llama 3, Qwen, "
                 "o200k, tekken or DeepSeek, or one set of characters)",
                 expression);
    DT_TRY(dt_split_add_kind(split, DT_SPLIT_SET, err));
    split->stages[split->count - 1].set = set;
out:
    dt_strbuf_release(&plain);
    return st;
}

dt_status dt_split_add_after(dt_split *split, dt_arena *arena, uint32_t code, dt_error *err)
{
    dt_status st = dt_split_add_kind(split, DT_SPLIT_SET, err);

    if (st == DT_OK)
        dt_split_set_after(&split->stages[split->count - 1].set, arena, code);
    return st;
}

bool dt_split_cuts_lines(const dt_split *split)
{
    for (int i = 0; i < split->count; i++) {
        const dt_split_set *set = &split->stages[i].set;

        if (split->stages[i].kind == DT_SPLIT_SET && set->joins_previous)
            return false;
        if (split->stages[i].kind != DT_SPLIT_SET || dt_split_set_is_line_break(set))
            return true;
        if (set->of.ascii['\n'] || set->before.ascii['\n'])
            return false; /* this stage's pieces span lines, before a later stage can cut them */
    }
    return false;
}

/* clang-format off */
#define R DT_CODE_REMAINDER
#define U DT_CODE_UPPER
#define L DT_CODE_LOWER
#define N DT_CODE_NUMBER
#define P DT_CODE_PUNCT
#define S DT_CODE_SYMBOL
#define W DT_CODE_SPACE
static const uint16_t ascii[128] = {
    R, R, R, R, R, R, R, R, R, W, W, W, W, W, R, R, R, R, R, R, R, R, R, R, R, R, R, R, R, R, R, R,
    W, P, P, P, S, P, P, P, P, P, P, S, P, P, P, P, N, N, N, N, N, N, N, N, N, N, P, P, S, S, S, P,
    P, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, P, P, P, S, P,
    S, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, P, S, P, S, R};
#undef R
#undef U
#undef L
#undef N
#undef P
#undef S
#undef W
/* clang-format on */

enum {
    LETTER = DT_CODE_LETTER,
    OTHER = DT_CODE_MARK | DT_CODE_PUNCT | DT_CODE_SYMBOL | DT_CODE_REMAINDER, /* [^\s\p{L}\p{N}] */
};

static inline unsigned look(place position, size_t *used)
{
    if (*position < 0x80) {
        *used = 1;
        return ascii[*position];
    }
    return dt_code_class_of(dt_code_at(position, used));
}

/* Returns the end of the run of characters in these classes. */
static inline place skip(place position, place end, unsigned classes)
{
    size_t used;

    for (; position < end; position += used)
        if ((look(position, &used) & classes) == 0)
            break;
    return position;
}

static inline bool is_break(unsigned char c)
{
    return c == '\r' || c == '\n';
}

static inline unsigned char lower(unsigned char c, bool any_case)
{
    return any_case && c >= 'A' && c <= 'Z' ? (unsigned char)(c + 32) : c;
}

/* At a quote: returns the end of the contraction 's, 't, 're, 've, 'm, 'll or 'd, NULL if there is
 * none. Case-insensitive matching accepts U+017F as an s. */
static place contraction(place position, place end, bool any_case)
{
    size_t left = (size_t)(end - position);
    unsigned char one = left > 1 ? lower(position[1], any_case) : 0;
    unsigned char two = left > 2 ? lower(position[2], any_case) : 0;

    if (one == 's' || one == 't' || one == 'm' || one == 'd')
        return position + 2;
    if ((one == 'r' && two == 'e') || (one == 'v' && two == 'e') || (one == 'l' && two == 'l'))
        return position + 3;
    if (any_case && one == 0xc5 && two == 0xbf)
        return position + 3;
    return NULL;
}

/* `\s+(?!\S)|\s+` at a space: returns the end of the spaces, or the start of the last one if
 * something else follows. */
static place spaces(place position, place end)
{
    place behind = position, last = position;
    size_t used;

    for (; behind < end && look(behind, &used) == DT_CODE_SPACE; behind += used)
        last = behind;
    return behind < end && last > position ? last : behind;
}

static inline place gpt2(place position, place end)
{
    place start = position, behind;
    unsigned class;
    size_t used;

    if (*position == '\'' && (behind = contraction(position, end, false)) != NULL)
        return behind;
    if (*position == ' ' && position + 1 < end)
        start++;
    class = look(start, &used);
    if (class == DT_CODE_SPACE)
        return spaces(position, end);
    if ((class & LETTER) != 0)
        return skip(start + used, end, LETTER);
    return skip(start + used, end, class == DT_CODE_NUMBER ? DT_CODE_NUMBER : OTHER);
}

/* `\s*[\r\n]+`: returns the position after the last line break among the spaces; NULL if there is
 * none. */
static place line_breaks(place position, place end)
{
    place behind = NULL;
    size_t used;

    for (; position < end && look(position, &used) == DT_CODE_SPACE; position += used)
        if (is_break(*position))
            behind = position + 1;
    return behind;
}

static place numbers(place position, place end, int most)
{
    size_t used;

    for (; most > 0 && position < end && look(position, &used) == DT_CODE_NUMBER; most--)
        position += used;
    return position;
}

/* ` ?[...]+[\r\n]*` for characters of these classes; with `slash`, the final set also contains a
 * slash. Returns the end of the match; NULL if there is none. */
static place signs(place position, place end, unsigned classes, bool slash)
{
    size_t used;

    if (*position == ' ')
        position++;
    if (position == end || (look(position, &used) & classes) == 0)
        return NULL;
    position = skip(position + used, end, classes);
    while (position < end && (is_break(*position) || (slash && *position == '/')))
        position++;
    return position;
}

/* `\s*[\r\n]+|\s+(?!\S)|\s+` at a space: returns the end of the match. */
static place breaks_or_spaces(place position, place end)
{
    place behind = line_breaks(position, end);

    return behind != NULL ? behind : spaces(position, end);
}

/* marks: the marks that count as letters, DT_CODE_MARK or 0. */
static inline place llama3(place position, place end, int most_numbers, bool end_is_one,
                           unsigned marks)
{
    const unsigned letter = LETTER | marks, other = OTHER & ~marks;
    size_t used, next_used;
    place behind;
    unsigned class;

    if (*position == '\'' && (behind = contraction(position, end, true)) != NULL)
        return behind;
    class = look(position, &used);
    if ((class & letter) != 0)
        return skip(position + used, end, letter);
    if (class == DT_CODE_NUMBER)
        return numbers(position, end, most_numbers);
    if (!is_break(*position) && position + used < end &&
        (look(position + used, &next_used) & letter) != 0)
        return skip(position + used + next_used, end, letter);
    if ((behind = signs(position, end, other, false)) != NULL)
        return behind;
    if (end_is_one && skip(position, end, DT_CODE_SPACE) == end)
        return end;
    return breaks_or_spaces(position, end);
}

/* The words of o200k, without the optional character before them. Marks and caseless letters count
 * as upper and as lower case. */
enum {
    BOTH = DT_CODE_CASELESS | DT_CODE_MARK,
    UPPER = DT_CODE_UPPER | BOTH,
    LOWER = DT_CODE_LOWER | BOTH
};

/* `Upper*Lower+`: returns the end of the match; NULL if there is none. Backtracks over letters that
 * are upper and lower case, to leave one for Lower+. */
static place lower_word(place position, place end)
{
    place both_end = NULL;
    unsigned class = 0;
    size_t used;

    for (; position < end && ((class = look(position, &used)) & UPPER) != 0; position += used)
        if ((class & BOTH) != 0)
            both_end = position + used;
    return position < end && class == DT_CODE_LOWER ? skip(position, end, LOWER) : both_end;
}

/* `Upper+Lower*`, tried only if lower_word does not match: returns the end of the match; NULL if
 * there is none. */
static place upper_word(place position, place end)
{
    place behind = skip(position, end, UPPER);

    return behind > position ? behind : NULL;
}

/* Tries the alternatives in their order, each first with the character before the word, then
 * without. */
static place cased_word(place position, place behind_first, place end)
{
    place behind = NULL;

    if (behind_first != NULL)
        behind = lower_word(behind_first, end);
    if (behind == NULL)
        behind = lower_word(position, end);
    if (behind == NULL && behind_first != NULL)
        behind = upper_word(behind_first, end);
    return behind != NULL ? behind : upper_word(position, end);
}

static place with_contraction(place word_end, place end)
{
    place behind = word_end < end && *word_end == '\'' ? contraction(word_end, end, true) : NULL;

    return behind != NULL ? behind : word_end;
}

/* tekken: without contractions, and each digit alone. */
static inline place o200k(place position, place end, bool tekken)
{
    place behind;
    size_t used;
    unsigned class = look(position, &used);

    if ((class & (LETTER | DT_CODE_NUMBER)) == 0 && !is_break(*position) && position + used < end)
        behind = cased_word(position, position + used, end);
    else
        behind = cased_word(position, NULL, end);
    if (behind != NULL)
        return tekken ? behind : with_contraction(behind, end);
    if (class == DT_CODE_NUMBER)
        return numbers(position, end, tekken ? 1 : 3);
    if ((behind = signs(position, end, OTHER, true)) != NULL)
        return behind;
    return breaks_or_spaces(position, end);
}

static inline bool is_ascii_letter(unsigned char c)
{
    return lower(c, true) >= 'a' && lower(c, true) <= 'z';
}

/* Returns the end of the match; NULL if no alternative matches here. */
static place deepseek(place position, place end)
{
    enum { WORD = DT_CODE_LETTER | DT_CODE_MARK, SIGN = DT_CODE_PUNCT | DT_CODE_SYMBOL };
    size_t used, next_used;
    unsigned class = look(position, &used);
    place behind;

    if (*position < 0x80 && (class & SIGN) != 0 && position + 1 < end &&
        is_ascii_letter(position[1])) {
        for (position++; position < end && is_ascii_letter(*position);)
            position++;
        return position;
    }
    if ((class & (LETTER | SIGN)) == 0 && !is_break(*position) && position + used < end &&
        (look(position + used, &next_used) & WORD) != 0)
        return skip(position + used + next_used, end, WORD);
    if ((class & WORD) != 0)
        return skip(position + used, end, WORD);
    if ((behind = signs(position, end, SIGN, false)) != NULL)
        return behind;
    return class == DT_CODE_SPACE ? breaks_or_spaces(position, end) : NULL;
}

static place deepseek_piece(place position, place end)
{
    place behind = deepseek(position, end);
    size_t used;

    while (behind == NULL) {
        (void)look(position, &used);
        position += used;
        behind = position == end || deepseek(position, end) != NULL ? position : NULL;
    }
    return behind;
}

static inline place piece_end(const dt_split_stage *stage, place position, place end)
{
    switch (stage->kind) {
    case DT_SPLIT_GPT2:
        return gpt2(position, end);
    case DT_SPLIT_LLAMA3:
        return llama3(position, end, 3, false, 0);
    case DT_SPLIT_QWEN:
        return llama3(position, end, 1, false, 0);
    case DT_SPLIT_QWEN35:
        return llama3(position, end, 1, false, DT_CODE_MARK);
    case DT_SPLIT_CL100K:
        return llama3(position, end, 3, true, 0);
    case DT_SPLIT_O200K:
        return o200k(position, end, false);
    case DT_SPLIT_TEKKEN:
        return o200k(position, end, true);
    case DT_SPLIT_DEEPSEEK:
        return deepseek_piece(position, end);
    default:
        return dt_split_set_piece(&stage->set, position, end);
    }
}

void dt_splitter_begin(dt_splitter *splitter, const dt_split *split, const char *text,
                       size_t length)
{
    splitter->split = split;
    splitter->blocks = dt_split_block_kind_of(split);
    for (int i = 0; i <= split->count; i++)
        splitter->ends[i] = (place)text;
    splitter->ends[0] += length;
}

/* Returns the end of the word at `position`: the last stage whose piece is not finished finds its next
 * piece, and every later stage starts on that piece. dt_splitter_block leaves pieces behind; these end
 * before `position`. */
static place staged_end(dt_splitter *splitter, place position)
{
    int count = splitter->split->count, stage = count;
    place *ends = splitter->ends;

    while (stage > 0 && ends[stage] <= position)
        stage--;
    for (; stage < count; stage++)
        ends[stage + 1] = piece_end(&splitter->split->stages[stage], position, ends[stage]);
    return ends[count];
}

place dt_splitter_next(dt_splitter *splitter, place position)
{
    if (splitter->split->count == 1) /* true for most tokenizers: saves a tenth of their time */
        return piece_end(&splitter->split->stages[0], position, splitter->ends[0]);
    return staged_end(splitter, position);
}

uint64_t dt_splitter_block(const dt_splitter *splitter, place position)
{
    return dt_split_block(splitter->blocks, position, (size_t)(splitter->ends[0] - position));
}
