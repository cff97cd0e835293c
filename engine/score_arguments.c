#include "engine/score_arguments.h"

#include <getopt.h>
#include <string.h>

#include "engine/arguments.h"

dt_status dt_score_arguments_parse(dt_score_arguments *out, int argc, char **argv, dt_error *err)
{
    static const struct option options[] = {{"checkpoint", required_argument, NULL, 'c'},
                                            {"input", required_argument, NULL, 'i'},
                                            {"target", required_argument, NULL, 't'},
                                            {"device", required_argument, NULL, 'd'},
                                            {"threads", required_argument, NULL, 'j'},
                                            {"json", no_argument, NULL, 'J'},
                                            {NULL, 0, NULL, 0}};
    dt_status st = DT_OK;
    int option;

    *out = (dt_score_arguments){.options = {.device = "cpu"}};
    while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        switch (option) {
        case 'c':
            out->options.checkpoint = optarg;
            break;
        case 'i':
            out->input = optarg;
            break;
        case 't':
            out->target = optarg;
            break;
        case 'd':
            out->options.device = optarg;
            break;
        case 'j':
            DT_TRY(dt_argument_whole(&out->options.threads, optarg, "--threads", 0, 1024, err));
            break;
        case 'J':
            out->json = true;
            break;
        default:
            DT_TRY(dt_argument_refuse(argv, option, err));
        }
    }
    if (optind < argc)
        DT_TRY(dt_argument_refuse(argv, -1, err));
    if (out->options.checkpoint == NULL || out->input == NULL)
        DT_THROW(err, DT_ERR_USAGE, "--checkpoint or --input is missing");
    if (strcmp(out->input, "-") == 0 && out->target != NULL && strcmp(out->target, "-") == 0)
        DT_THROW(err, DT_ERR_USAGE, "--input and --target are both stdin; name a file for one");
out:
    return st;
}
