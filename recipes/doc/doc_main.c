/* dtrun-recipe-doc: writes the reference page of the recipe to stdout. */
#include <stdio.h>

#include "recipes/doc/doc.h"

int main(void)
{
    dt_strbuf page;
    bool good;

    dt_strbuf_init(&page);
    dt_recipe_doc(&page);
    good = fwrite(page.data, 1, page.length, stdout) == page.length && fflush(stdout) == 0;
    dt_strbuf_release(&page);
    if (!good)
        perror("dtrun-recipe-doc");
    return good ? 0 : 3;
}
