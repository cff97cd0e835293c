#include "runner/term/bar.h"

static void add_repeated(dt_strbuf *out, const char *text, size_t times)
{
    while (times-- > 0)
        dt_strbuf_add_str(out, text);
}

void dt_bar_add(dt_strbuf *out, const dt_term *term, dt_style style, double share, size_t columns)
{
    double clamped = !(share > 0) ? 0 : share > 1 ? 1 : share;
    size_t halves = (size_t)(clamped * 2 * (double)columns), full = halves / 2;
    dt_strbuf done, left;

    dt_strbuf_init(&done);
    dt_strbuf_init(&left);
    add_repeated(&done, term->unicode ? "━" : "#", full);
    if (term->unicode && halves % 2 == 1) {
        add_repeated(&done, "╸", 1);
        full++;
    }
    add_repeated(&left, term->unicode ? "─" : "-", columns - full);
    if (done.length > 0)
        dt_term_add(out, term, style, "%s", done.data);
    if (left.length > 0)
        dt_term_add(out, term, DT_STYLE_DIM, "%s", left.data);
    dt_strbuf_release(&done);
    dt_strbuf_release(&left);
}
