/* serve_store STORE: serves a store on a free port, prints the URL and on a second line the link
 * that opens it, ends at the end of stdin. */
#include <stdio.h>
#include <unistd.h>

#include "web/server.h"

#define TOKEN "00112233445566778899aabbccddeeff"

static void print_url(void *context, const char *url)
{
    printf("%s\n%s?token=%s\n", url, url, TOKEN);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    dt_web_options options = {.listen = "127.0.0.1:0",
                              .token = TOKEN,
                              .store_path = argc == 2 ? argv[1] : NULL,
                              .stop_fd = STDIN_FILENO,
                              .listening = print_url};
    dt_error err = DT_ERROR_INIT;

    if (argc != 2) {
        fprintf(stderr, "usage: serve_store STORE\n");
        return 2;
    }
    if (dt_web_serve(&options, &err) != DT_OK) {
        fprintf(stderr, "serve_store: %s\n", err.message);
        return 1;
    }
    return 0;
}
