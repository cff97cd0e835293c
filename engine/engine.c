/* engine: the program that trains one rank, generates text from a checkpoint, or exports it.
 * Users start it through `dtrun`.
 *
 * Exit codes  0 success; 1 training, the checkpoint or the channel failed; 2 wrong usage
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/process.h"
#include "base/version.h"
#include "engine/commands.h"

static const char help[] =
    "usage: dtrun-engine train --plan FILE\n"
    "       dtrun-engine generate --checkpoint DIR [--prompt TEXT | --prompt-file FILE]\n"
    "                             [--input FILE] [--beam N] [--length-penalty A]\n"
    "                             [--tokens N] [--stop TEXT]... [--past-end] [--no-special] "
    "[--temperature X]\n"
    "                             [--top-k K] [--top-p P] [--repetition-penalty R] [--seed S]\n"
    "                             [--device NAME] [--threads N] [--json]\n"
    "                             [--chat FILE --template DIR [--chat-template FILE]]\n"
    "       dtrun-engine chat --checkpoint DIR --template DIR [--chat-template FILE] [--system "
    "TEXT]\n"
    "                         [options of generate]\n"
    "       dtrun-engine score --checkpoint DIR --input FILE [--target FILE] [--device NAME]\n"
    "                          [--threads N] [--json]\n"
    "       dtrun-engine evaluate (--checkpoint DIR | --recipe FILE) --input FILE [--device NAME]\n"
    "                             [--threads N] [--precision P]\n"
    "       dtrun-engine export --checkpoint DIR --output DIR [--origin DIR] [--dtype TYPE]\n"
    "                           [--file-mb N] [--merge] [--peft]\n"
    "       dtrun-engine export --checkpoint DIR --gguf FILE [--type TYPE] [--name NAME] [--force]\n"
    "                           [--origin DIR] [--merge]\n"
    "       dtrun-engine --version | --help\n"
    "\n"
    "train      run one rank of a plan, of any task; 'dtrun launch' writes the plan and starts the "
    "ranks.\n"
    "           RANK is the rank (default 0), DTRUN_CHANNEL the channel to the agent; without it, "
    "events\n"
    "           go to stdout.\n"
    "generate   print the prompt and the text that the model adds, as it is generated; with "
    "--input,\n"
    "           continue or translate each line of a file.\n"
    "           With --chat, answer each conversation of a file.\n"
    "chat       answer what is typed; the conversation is kept.\n"
    "score      print the log-likelihood and token count of each line of a file, then the totals; "
    "with\n"
    "           --target, of each line of that file given the line of --input.\n"
    "evaluate   print the result of each row of evaluation tasks as JSON, one a line.\n"
    "export     write a folder that Hugging Face transformers can load; prints its contents as "
    "JSON.\n"
    "\n"
    "  --plan FILE        plan as JSON\n"
    "  --checkpoint DIR   a checkpoint directory, step-00000100 for example\n"
    "  --prompt TEXT      start of the text (default: the start of a document, which is not "
    "printed)\n"
    "  --prompt-file FILE read the prompt from this file, - for stdin\n"
    "  --input FILE       lines to continue, translate or score, - for stdin\n"
    "  --recipe FILE      a resolved recipe as JSON, whose model.from has the weights\n"
    "  --target FILE      lines of translations to score\n"
    "  --chat FILE        conversations, a JSON object a line, or one in several lines\n"
    "  --template DIR     folder with the chat template and the tokenizer's settings\n"
    "  --chat-template F  use this template instead\n"
    "  --system TEXT      the first message of the conversation\n"
    "  --beam N           beam search with N beams instead of sampling\n"
    "  --length-penalty A exponent of the length by which a beam search divides scores (default "
    "1)\n"
    "  --tokens N         maximum number of tokens to add (default 300)\n"
    "  --stop TEXT        end before this text (repeatable)\n"
    "  --past-end         continue after a token that ends texts\n"
    "  --no-special       do not put special tokens of the tokenizer before a prompt\n"
    "  --temperature X    0 takes the likeliest token, 1 samples from the model's probabilities "
    "(default 0.8)\n"
    "  --top-k K          sample among the K likeliest tokens only (default 0: all)\n"
    "  --top-p P          sample among the likeliest tokens whose probabilities sum to P (default "
    "1: all)\n"
    "  --repetition-penalty R  make tokens that have occurred less likely by the factor R (default "
    "1: off)\n"
    "  --seed S           seed of the sampling (default 1337)\n"
    "  --device NAME      cpu (default) or cuda:N\n"
    "  --threads N        CPU threads (default 0: all cores)\n"
    "  --json             print one JSON object: checkpoint, step, prompt, text, tokens, ended, "
    "seed\n"
    "  --output DIR       folder to create\n"
    "  --origin DIR       take config.json and tokenizer files from this folder\n"
    "  --dtype TYPE       fp32 (default), bf16 or fp16\n"
    "  --gguf FILE        write a GGUF file; --type f32, f16 (default), bf16 or q8_0\n"
    "  --file-mb N        maximum size of the tensors in one file, in MB (default 5000)\n";

int main(int argc, char **argv)
{
    dt_error err = DT_ERROR_INIT;
    const char *command = argc > 1 ? argv[1] : "";
    dt_status st;

    /* a stop can be pending (engine/channel/events.h) */
    dt_startup(strcmp(command, "train") == 0 ? SIGTERM : 0);
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
    else if (strcmp(command, "chat") == 0)
        st = dt_engine_chat(argc - 1, argv + 1, &err);
    else if (strcmp(command, "score") == 0)
        st = dt_engine_score(argc - 1, argv + 1, &err);
    else if (strcmp(command, "evaluate") == 0)
        st = dt_engine_evaluate(argc - 1, argv + 1, &err);
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
