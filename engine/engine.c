/* engine: the program that trains one rank, generates text from a checkpoint, or exports it.
 * Users start it through `dtrun`.
 *
 * Exit codes  0 success; 1 training, the checkpoint or the channel failed; 2 wrong usage
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/startup.h"
#include "base/version.h"
#include "engine/commands.h"

#include "base/banned.h"

static const char help[] =
    "usage: dtrun-engine train --plan FILE\n"
    "       dtrun-engine generate --checkpoint DIR [--prompt TEXT | --prompt-file FILE]\n"
    "                             [--input FILE] [--beam N] [--length-penalty A]\n"
    "                             [--tokens N] [--stop TEXT]... [--past-end] [--no-special] "
    "[--temperature X]\n"
    "                             [--top-k K] [--top-p P] [--repetition-penalty R] [--seed S]\n"
    "                             [--device NAME] [--threads N] [--json]\n"
    "       dtrun-engine score --checkpoint DIR --input FILE [--target FILE] [--device NAME]\n"
    "                          [--threads N] [--json]\n"
    "       dtrun-engine export --checkpoint DIR --output DIR [--origin DIR] [--dtype TYPE]\n"
    "                           [--file-mb N]\n"
    "       dtrun-engine --version | --help\n"
    "\n"
    "train      runs one rank of a plan, whatever its task; 'dtrun launch' writes the plan and "
    "starts the ranks.\n"
    "           The rank is in RANK (0 where it is unset), the channel to the agent in\n"
    "           DTRUN_CHANNEL; without it events go to stdout.\n"
    "generate   prints the prompt and what the model adds to it, as it comes; with --input, each "
    "of its\n"
    "           lines translated.\n"
    "score      prints the log-likelihood of each line of a file and its tokens, then of all; of "
    "pairs\n"
    "           that of the target's, given the input's.\n"
    "export     makes a folder that Hugging Face's transformers load; says in JSON what is in it.\n"
    "\n"
    "  --plan FILE        plan as JSON\n"
    "  --checkpoint DIR   a checkpoint directory, step-00000100 for example\n"
    "  --prompt TEXT      what the text starts with, - for stdin (default: as a document does, not "
    "printed)\n"
    "  --prompt-file FILE the same from a file\n"
    "  --tokens N         how many tokens to add at most (default 300)\n"
    "  --stop TEXT        ends before this text; may be given again\n"
    "  --past-end         continues after a token that ends texts\n"
    "  --no-special       puts no special tokens of the tokenizer before a prompt\n"
    "  --temperature X    0 takes the likeliest, 1 samples as learnt (default 0.8)\n"
    "  --top-k K          samples among the K likeliest only (default 0: all)\n"
    "  --top-p P          samples among the likeliest whose chances add up to P (default 1: all)\n"
    "  --repetition-penalty R  divides what speaks for a token that was there (default 1: not)\n"
    "  --seed S           of the sampling (default 1337)\n"
    "  --device NAME      cpu (default) or cuda:N\n"
    "  --threads N        of the cpu, default 0: all cores\n"
    "  --json             one JSON object: checkpoint, step, prompt, text, tokens, ended, seed\n"
    "  --output DIR       the folder to make\n"
    "  --origin DIR       config.json and tokenizer files that it continues from\n"
    "  --dtype TYPE       fp32 (default), bf16 or fp16\n"
    "  --file-mb N        tensors in one file, in MB (default 5000)\n";

int main(int argc, char **argv)
{
    dt_error err = DT_ERROR_INIT;
    const char *command = argc > 1 ? argv[1] : "";
    dt_status st;

    dt_startup(strcmp(command, "train") == 0 ? SIGTERM
                                             : 0); /* a stop can be pending: channel/stop.h */
    if (strcmp(command, "--version") == 0) {
        printf("dtrun-engine %s (%s)\n", DT_VERSION, DT_COMMIT);
        return 0;
    }
    if (strcmp(command, "--help") == 0 || strcmp(command, "-h") == 0) {
        fputs(help, stdout);
        return 0;
    }
    if (strcmp(command, "train") == 0)
        st = dt_engine_train(argc - 1, argv + 1, &err);
    else if (strcmp(command, "generate") == 0)
        st = dt_engine_generate(argc - 1, argv + 1, &err);
    else if (strcmp(command, "score") == 0)
        st = dt_engine_score(argc - 1, argv + 1, &err);
    else if (strcmp(command, "export") == 0)
        st = dt_engine_export(argc - 1, argv + 1, &err);
    else if (argc < 2)
        st = DT_FAIL(&err, DT_ERR_USAGE, "a command is missing");
    else
        st = DT_FAIL(&err, DT_ERR_USAGE, "unknown command '%s'", command);
    if (st == DT_OK)
        return 0;
    fprintf(stderr, "dtrun-engine: %s\n", err.message);
    if (st != DT_ERR_USAGE)
        return 1;
    fputs("try 'dtrun-engine --help'\n", stderr);
    return 2;
}
