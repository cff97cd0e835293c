/* preflight: checks everything that can be checked before a run exists, downloads data that are named by
 * URL, and finds the files from which parameters start.
 *
 * Errors  DT_ERR_RECIPE for what the recipe must change (with the arithmetic for memory), DT_ERR_IO for an
 *         incomplete installation or a full disk
 */
#ifndef DT_RUNNER_LAUNCH_PREFLIGHT_H
#define DT_RUNNER_LAUNCH_PREFLIGHT_H

#include <stdbool.h>

#include "base/error.h"
#include "base/memory.h"
#include "engine/data/data.h"
#include "recipes/cost/memory.h"
#include "recipes/fields/recipe.h"
#include "recipes/plan/plan.h"
#include "recipes/read/reader.h"
#include "runner/corpus/corpus.h"
#include "runner/node_setup/workdir/workdir.h"

/* The conversations of data.train, as far as they were read. */
typedef struct dt_preflight_chats {
    dt_prepared_facts facts;
    bool whole; /* false: only the first ones were read */
} dt_preflight_chats;

typedef struct dt_preflight {
    dt_recipe recipe; /* recipe as stored: data by URL, nodes by Slurm */
    dt_plan plan;     /* the caller fills in run, attempt, directory and resume_from */
    dt_memory memory;
    dt_dataset_facts data;          /* vocabulary and tokens, as far as known */
    int64_t data_files, data_bytes; /* training data; 0: not read */
    /* format of the first file, as in data.tokens; NULL if not read */
    const char *data_kind;
    const char *
        warnings; /* about the tokenizer, one a line; NULL or "": none. A launch has printed them */
    const dt_preflight_chats *chats; /* NULL: the data are not conversations, or were not read */
    int64_t ranks_on_node;           /* ranks of the fullest node */
    /* memory for the ranks of this machine; 0 if none uses its processors: the engine checks the memory of a GPU */
    int64_t available_bytes;
    int64_t tokens_per_step;
    const dt_tree *tree; /* folder of a command for nodes that do not share it, or NULL (nodes.h) */
    const char *warning; /* about the steps, which are known only with the data; NULL: none */
    const dt_workdir_left_list *left; /* what rules leave out of it; NULL without `tree` */
    bool waits;                       /* the run waits in the queue: it gets no supervisor yet */
    /* of conversations: ids of 'evaluate.samples', for the plan */
    const dt_plan_prompt *prompts;
    int64_t prompt_count;
    const dt_origins *origins; /* origins of the recipe, stored with the attempt; may be NULL */
} dt_preflight;

/* Checks data and plan of the recipe only. source (may be NULL): where the recipe was read from;
 * problems of the data are reported at its line. For `dtrun validate`, which may run on another
 * machine. */
dt_status dt_preflight_recipe(dt_preflight *out, const dt_recipe *recipe,
                              const dt_recipe_source *source, dt_arena *arena, dt_error *err);
/* The same without reading the data, which need not be here: vocabulary and size are taken from
 * the recipe. */
dt_status dt_preflight_without_data(dt_preflight *out, const dt_recipe *recipe, dt_arena *arena,
                                    dt_error *err);
/* The same for nodes that are assumed to have this number of GPUs each. DT_ERR_USAGE if the
 * recipe uses none. */
dt_status dt_preflight_with_gpus(dt_preflight *out, const dt_recipe *recipe,
                                 const dt_recipe_source *source, int64_t gpus, dt_arena *arena,
                                 dt_error *err);
/* Returns whether the plan's ranks on this machine fit its free memory; if not, err says why. */
bool dt_preflight_fits_here(dt_preflight *flight, const dt_recipe *recipe, dt_error *err);
/* Checks the recipe as dt_preflight_recipe does, and whether it fits this machine. */
dt_status dt_preflight_check(dt_preflight *out, const dt_recipe *recipe,
                             const dt_recipe_source *source, dt_arena *arena, dt_error *err);

/* Calls `take` for each line of `warnings`, which may be NULL. */
void dt_preflight_each_warning(const char *warnings,
                               void (*take)(const char *line, size_t length, void *context),
                               void *context);

int64_t dt_preflight_replicas(const dt_preflight *flight); /* over all ranks */
/* Returns the tokens or rows of one step; for sentence pairs the target tokens of an average
 * step. */
int64_t dt_preflight_items(const dt_preflight *flight);
/* With data.pack: returns the share of padding in an epoch. */
double dt_preflight_padding(const dt_preflight *flight);
/* chat_facts.c: flight->chats in one line, or as JSON: "120 conversations (messages), 30,112 tokens, ..." */
const char *dt_preflight_chats_text(const dt_preflight *flight, dt_arena *arena);
json_t *dt_preflight_chats_to_json(const dt_preflight *flight);
/* Shares of the tokens that are trained, and of the assistants' text that the template leaves out. */
double dt_chat_trained_share(const dt_preflight_chats *chats);
double dt_chat_dropped_share(const dt_preflight_chats *chats);
/* mixture_facts.c: the parts of data.mixture in one line, or as JSON: "wiki 70 % (2.1 epochs of 1,200 sequences), ..." */
const char *dt_preflight_mixture_text(const dt_preflight *flight, dt_arena *arena);
json_t *dt_preflight_mixture_to_json(const dt_preflight *flight);
/* Samples of an epoch of the mixture; 0: only a full read of the data can tell. */
int64_t dt_preflight_mixture_samples(const dt_preflight *flight);
/* Returns the sequences (for sentence pairs: batches) of one step, over all replicas and micro-steps. */
int64_t dt_preflight_samples(const dt_preflight *flight);
/* Returns DT_ERR_RECIPE if the recipe's steps do not fit its data, as far as known. Sets flight->warning. */
dt_status dt_preflight_check_steps(dt_preflight *flight, dt_arena *arena, dt_error *err);
/* Returns the steps of the whole run as the engine will count them with this plan, from its
 * start (NULL) or from a checkpoint's position; 0 if only a full read of the data can tell. */
int64_t dt_preflight_steps(const dt_preflight *flight, const dt_budget_place *resume_place);

/* fetch_inputs: downloads the data that a recipe names by URL to this machine. */

/* Replaces every URL of data.train and data.validation by a path in the cache; *out borrows the
 * rest of `recipe`. Reports downloads on stderr. Errors as in runner/fetch/fetch.h. */
dt_status dt_fetch_recipe(dt_recipe *out, const dt_recipe *recipe, dt_arena *arena, dt_error *err);

/* weights: finds and checks the files from which a new run starts (model.from).
 *
 * Errors  DT_ERR_RECIPE naming what does not fit
 */

/* Finds the files and checks them against the recipe's model; flight->plan then has them. Does
 * nothing if the recipe names none. */
dt_status dt_weights_preflight(dt_preflight *flight, dt_arena *arena, dt_error *err);
/* The same for a run that continues an adapter's checkpoint; checks that the files are those that the adapter was trained
 * on. Does nothing if the recipe has no adapter. */
dt_status dt_weights_preflight_base(dt_preflight *flight, const char *checkpoint, dt_arena *arena,
                                    dt_error *err);

/* Folder RUN/origin, for exports of the run: config.json and generation_config.json of the weights, and the files of
 * the tokenizer: those next to the recipe's tokenizer.json, else those that came with the weights; data.chat_template as
 * chat_template.jinja. Then the original folders may be removed. recipe: with data.tokenizer as written, not the copy in the cache. */
#define DT_WEIGHTS_ORIGIN "origin"
dt_status dt_weights_keep_origin(const dt_weights_files *files, const dt_recipe *recipe,
                                 const char *run_folder, dt_arena *arena, dt_error *err);
/* Copies the folder of the run that this run was forked from; its recipe can have another data.chat_template. */
dt_status dt_weights_copy_origin(const char *from_run_folder, const dt_recipe *recipe,
                                 const char *run_folder, dt_arena *arena, dt_error *err);

/* Returns {"from": ..., "kind": ..., "files": [{"path", "bytes", "xxh3_128"}]} for the
 * provenance. New reference; NULL: parameters are initialized randomly. */
json_t *dt_weights_provenance(const dt_plan *plan);

#endif
