#include "engine/tokens/unicode.h"

#include <utf8proc.h>

/* The class of each libutf8proc category. */
static const uint16_t classes[] = {
    [UTF8PROC_CATEGORY_CN] = DT_CODE_REMAINDER, [UTF8PROC_CATEGORY_LU] = DT_CODE_UPPER,
    [UTF8PROC_CATEGORY_LL] = DT_CODE_LOWER,     [UTF8PROC_CATEGORY_LT] = DT_CODE_UPPER,
    [UTF8PROC_CATEGORY_LM] = DT_CODE_CASELESS,  [UTF8PROC_CATEGORY_LO] = DT_CODE_CASELESS,
    [UTF8PROC_CATEGORY_MN] = DT_CODE_MARK,      [UTF8PROC_CATEGORY_MC] = DT_CODE_MARK,
    [UTF8PROC_CATEGORY_ME] = DT_CODE_MARK,      [UTF8PROC_CATEGORY_ND] = DT_CODE_NUMBER,
    [UTF8PROC_CATEGORY_NL] = DT_CODE_NUMBER,    [UTF8PROC_CATEGORY_NO] = DT_CODE_NUMBER,
    [UTF8PROC_CATEGORY_PC] = DT_CODE_PUNCT,     [UTF8PROC_CATEGORY_PD] = DT_CODE_PUNCT,
    [UTF8PROC_CATEGORY_PS] = DT_CODE_PUNCT,     [UTF8PROC_CATEGORY_PE] = DT_CODE_PUNCT,
    [UTF8PROC_CATEGORY_PI] = DT_CODE_PUNCT,     [UTF8PROC_CATEGORY_PF] = DT_CODE_PUNCT,
    [UTF8PROC_CATEGORY_PO] = DT_CODE_PUNCT,     [UTF8PROC_CATEGORY_SM] = DT_CODE_SYMBOL,
    [UTF8PROC_CATEGORY_SC] = DT_CODE_SYMBOL,    [UTF8PROC_CATEGORY_SK] = DT_CODE_SYMBOL,
    [UTF8PROC_CATEGORY_SO] = DT_CODE_SYMBOL,    [UTF8PROC_CATEGORY_ZS] = DT_CODE_SPACE,
    [UTF8PROC_CATEGORY_ZL] = DT_CODE_SPACE,     [UTF8PROC_CATEGORY_ZP] = DT_CODE_SPACE,
    [UTF8PROC_CATEGORY_CC] = DT_CODE_REMAINDER, [UTF8PROC_CATEGORY_CF] = DT_CODE_REMAINDER,
    [UTF8PROC_CATEGORY_CS] = DT_CODE_REMAINDER, [UTF8PROC_CATEGORY_CO] = DT_CODE_REMAINDER,
};

/* Returns whether the code point has the property White_Space, which is the same in every version
 * of Unicode. */
static bool is_space(uint32_t code)
{
    if (code > 0x3000)
        return false;
    if (code < 0x1680)
        return (code >= '\t' && code <= '\r') || code == ' ' || code == 0x85 || code == 0xa0;
    return code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
           code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

dt_code_class dt_code_class_of(uint32_t code)
{
    if (is_space(code))
        return DT_CODE_SPACE;
    return (dt_code_class)classes[utf8proc_category((utf8proc_int32_t)code)];
}
