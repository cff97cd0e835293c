/* dtrun-metric-doc: prints docs/metrics.md, or with --script web/page/metric_table.js. */
#include <stdio.h>
#include <string.h>

#include "base/metric_kinds.h"

int main(int argc, char **argv)
{
    dt_strbuf text;
    int written;

    dt_strbuf_init(&text);
    if (argc > 1 && strcmp(argv[1], "--script") == 0)
        dt_metric_script(&text);
    else
        dt_metric_doc(&text);
    written = printf("%s", text.data);
    dt_strbuf_release(&text);
    return written < 0 || fflush(stdout) != 0;
}
