/* utf8proc: stands in for libutf8proc where that is not installed: no character has a class, and
 * dt_unicode_is_known (engine/tokens/unicode.h) says so. Only declares what engine/tokens uses.
 */
#ifndef DT_BARE_UTF8PROC_H
#define DT_BARE_UTF8PROC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef int32_t utf8proc_int32_t;
typedef ssize_t utf8proc_ssize_t;
typedef int utf8proc_option_t;

enum { UTF8PROC_STABLE = 2, UTF8PROC_COMPAT = 4, UTF8PROC_COMPOSE = 8, UTF8PROC_DECOMPOSE = 16 };

typedef enum {
    UTF8PROC_CATEGORY_CN,
    UTF8PROC_CATEGORY_LU,
    UTF8PROC_CATEGORY_LL,
    UTF8PROC_CATEGORY_LT,
    UTF8PROC_CATEGORY_LM,
    UTF8PROC_CATEGORY_LO,
    UTF8PROC_CATEGORY_MN,
    UTF8PROC_CATEGORY_MC,
    UTF8PROC_CATEGORY_ME,
    UTF8PROC_CATEGORY_ND,
    UTF8PROC_CATEGORY_NL,
    UTF8PROC_CATEGORY_NO,
    UTF8PROC_CATEGORY_PC,
    UTF8PROC_CATEGORY_PD,
    UTF8PROC_CATEGORY_PS,
    UTF8PROC_CATEGORY_PE,
    UTF8PROC_CATEGORY_PI,
    UTF8PROC_CATEGORY_PF,
    UTF8PROC_CATEGORY_PO,
    UTF8PROC_CATEGORY_SM,
    UTF8PROC_CATEGORY_SC,
    UTF8PROC_CATEGORY_SK,
    UTF8PROC_CATEGORY_SO,
    UTF8PROC_CATEGORY_ZS,
    UTF8PROC_CATEGORY_ZL,
    UTF8PROC_CATEGORY_ZP,
    UTF8PROC_CATEGORY_CC,
    UTF8PROC_CATEGORY_CF,
    UTF8PROC_CATEGORY_CS,
    UTF8PROC_CATEGORY_CO
} utf8proc_category_t;

typedef struct utf8proc_property_struct {
    int16_t category, combining_class, decomp_type;
    uint16_t decomp_seqindex;
} utf8proc_property_t;

static inline utf8proc_category_t utf8proc_category(utf8proc_int32_t code)
{
    (void)code;
    return UTF8PROC_CATEGORY_CN;
}

static inline const utf8proc_property_t *utf8proc_get_property(utf8proc_int32_t code)
{
    static const utf8proc_property_t none = {0, 0, 0, UINT16_MAX};

    (void)code;
    return &none;
}

static inline utf8proc_int32_t utf8proc_tolower(utf8proc_int32_t code)
{
    return code;
}

static inline int utf8proc_grapheme_break_stateful(utf8proc_int32_t first, utf8proc_int32_t second,
                                                   utf8proc_int32_t *state)
{
    (void)first;
    (void)second;
    (void)state;
    return 1;
}

static inline utf8proc_ssize_t utf8proc_decompose_char(utf8proc_int32_t code, utf8proc_int32_t *out,
                                                       utf8proc_ssize_t room,
                                                       utf8proc_option_t options, int *last)
{
    (void)room;
    (void)options;
    (void)last;
    out[0] = code;
    return 1;
}

static inline utf8proc_ssize_t utf8proc_normalize_utf32(utf8proc_int32_t *codes,
                                                        utf8proc_ssize_t count,
                                                        utf8proc_option_t options)
{
    (void)codes;
    (void)options;
    return count;
}

#endif
