/* hf: exports a checkpoint as a folder for Hugging Face's transformers, an adapter for PEFT, or a GGUF file, by calling the
 * engine. */
#include <string.h>

#include "base/child.h"
#include "base/file.h"
#include "runner/cli/program.h"
#include "runner/cli/report.h"
#include "runner/export/export.h"
#include "runner/launch/existing_run.h"
#include "runner/launch/preflight.h"
#include "runner/supervisor/supervisor.h"

typedef enum export_form { FORM_HF, FORM_PEFT, FORM_GGUF } export_form;

/* Says by how much the logits of a merged model differ, and what a program that reads the file does differently. */
static void note_result(const dt_export_job *job, const dt_strbuf *said)
{
    json_t *result = NULL, *note;
    size_t i;

    if (dt_json_parse(&result, said->data, said->length, "the engine", NULL) != DT_OK)
        return;
    if (dt_arguments_flag(job->call->args, "merge"))
        dt_report_note(
            job->call,
            "merged; on a sample, logits differ from the adapter's by at most %.3g (the largest "
            "is %.3g)",
            json_number_value(json_object_get(result, "logits_difference")),
            json_number_value(json_object_get(result, "logits_largest")));
    json_array_foreach(json_object_get(result, "notes"), i, note)
        dt_report_note(job->call, "%s", json_string_value(note));
    json_decref(result);
}

/* Runs `dtrun-engine export` on the checkpoint. */
static dt_status call_engine(const char *checkpoint, const dt_export_job *job, export_form form,
                             dt_error *err)
{
    const dt_arguments *args = job->call->args;
    const char *argv[24], *origin;
    dt_status st = DT_OK;
    dt_strbuf said, errors;
    int argc = 0, exit_code = 0;

    dt_strbuf_init(&said);
    dt_strbuf_init(&errors);
    DT_TRY(dt_run_path(&origin, job->runs[0].id, DT_WEIGHTS_ORIGIN, job->call->arena, err));
    DT_TRY(dt_program_engine(&argv[argc++], job->call->arena, err));
    argv[argc++] = "export";
    argv[argc++] = "--checkpoint";
    argv[argc++] = checkpoint;
    argv[argc++] = form == FORM_GGUF ? "--gguf" : "--output";
    argv[argc++] = job->target;
    argv[argc++] = form == FORM_GGUF ? "--type" : "--dtype";
    argv[argc++] = dt_arguments_get(args, form == FORM_GGUF ? "type" : "dtype")->text;
    argv[argc++] = form == FORM_GGUF ? "--name" : "--file-mb";
    argv[argc++] = form == FORM_GGUF ? job->runs[0].name : dt_arguments_get(args, "file-mb")->text;
    if (form == FORM_GGUF && job->replace)
        argv[argc++] = "--force";
    if (dt_file_exists(origin)) {
        argv[argc++] = "--origin";
        argv[argc++] = origin;
    }
    if (form == FORM_PEFT)
        argv[argc++] = "--peft";
    if (dt_arguments_flag(args, "merge"))
        argv[argc++] = "--merge";
    argv[argc] = NULL;
    DT_TRY(dt_child_run(&exit_code, &(dt_child_call){.argv = argv, .out = &said, .errors = &errors},
                        err));
    DT_TRY(dt_program_engine_status(exit_code, &errors, err));
    note_result(job, &said);
out:
    dt_strbuf_release(&said);
    dt_strbuf_release(&errors);
    return st;
}

/* Notes a missing tokenizer: AutoTokenizer would fail, or find the tokenizer of another model. */
static void note_vocabulary(const dt_export_job *job)
{
    static const char *const names[] = {"tokenizer.json", "tokenizer.model", "vocab.json"};
    bool there = false;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !there; i++)
        there = dt_file_exists(dt_arena_printf(job->call->arena, "%s/%s", job->target, names[i]));
    if (!there)
        dt_report_note(
            job->call,
            "'%s' has no tokenizer: the run was trained on token ids, or transformers cannot read "
            "its vocabulary; copy the tokenizer.json that made the ids there",
            job->target);
}

static dt_status write_form(const dt_export_job *job, export_form form, dt_error *err)
{
    const char *checkpoint;
    dt_status st = DT_OK;

    DT_TRY(dt_existing_run_checkpoint_path(&checkpoint, job->store, &job->runs[0], job->which,
                                           job->call->arena, err));
    DT_TRY(call_engine(checkpoint, job, form, err));
    if (form == FORM_HF) /* PEFT takes that of the base */
        note_vocabulary(job);
out:
    return st;
}

static dt_status write_folder(const dt_export_job *job, dt_error *err)
{
    return write_form(job, FORM_HF, err);
}

static dt_status write_adapter(const dt_export_job *job, dt_error *err)
{
    return write_form(job, FORM_PEFT, err);
}

static dt_status write_gguf(const dt_export_job *job, dt_error *err)
{
    return write_form(job, FORM_GGUF, err);
}

const dt_export_format dt_export_gguf = {
    .name = "gguf",
    .target = "FILE",
    .runs_most = 1,
    .help = "FILE: model, tokenizer and chat template for llama.cpp",
    .write = write_gguf,
};

const dt_export_format dt_export_peft = {
    .name = "peft",
    .target = "DIR",
    .runs_most = 1,
    .help = "DIR: adapter_config.json and adapter_model.safetensors",
    .write = write_adapter,
};

const dt_export_format dt_export_hf = {
    .name = "hf",
    .target = "DIR",
    .runs_most = 1,
    .help = "DIR: config.json and model.safetensors for transformers",
    .write = write_folder,
};
