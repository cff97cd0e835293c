/* launcher_flags: lists the flags of torchrun (also torch.distributed.launch), deepspeed, accelerate and python.
 * tests/peers/launcher_flags.py compares the tables with the programs' own help. */
#include "runner/convert/launcher.h"

#define FINDS  "dtrun finds ports and addresses itself"
#define LOGS   "logs are in the run's folder: 'dtrun logs'"
#define CORES  "dtrun divides the cores of a node among its ranks ('threads')"
#define NODES  "one launch starts all nodes, numbered in the order of 'nodes'"
#define STARTS "dtrun starts the nodes itself, over ssh or with Slurm"
#define HELP   "it starts no training"

/* one flag per line */
/* clang-format off */
static const dt_flag torch[] = {
    {"--nnodes", NULL, DT_TAKES_TEXT, DT_FLAG_PART, "nodes, and nodes_min of MIN:MAX", NULL},
    {"--nproc_per_node", NULL, DT_TAKES_TEXT, DT_FLAG_PART, "gpus; without it one process on each node", NULL},
    {"--master_addr", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "dtrun finds the address of the first node; a name of it goes into 'nodes'", NULL},
    {"--node_rank", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, NODES, "0"},
    {"--master_port", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, FINDS, NULL},
    {"--standalone", NULL, DT_TAKES_NOTHING, DT_FLAG_PART, "nothing: one node is the default", NULL},
    {"--rdzv_backend", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, FINDS, NULL},
    {"--rdzv_endpoint", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, FINDS, NULL},
    {"--rdzv_id", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "every run has an id of its own", NULL},
    {"--rdzv_conf", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, FINDS, NULL},
    {"--max_restarts", NULL, DT_TAKES_INT, DT_FLAG_FIELD, "failure.max_restarts", NULL},
    {"--monitor_interval", NULL, DT_TAKES_NUMBER, DT_FLAG_LEFT, "dtrun notices at once when a rank ends", NULL},
    {"--start_method", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "ranks are programs of their own", NULL},
    {"--event_log_handler", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "'dtrun logs' has the events of a run", NULL},
    {"--role", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "all ranks have the same role", NULL},
    {"--log_dir", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, LOGS, NULL},
    {"--redirects", "-r", DT_TAKES_TEXT, DT_FLAG_LEFT, LOGS, NULL},
    {"--tee", "-t", DT_TAKES_TEXT, DT_FLAG_LEFT, "'dtrun logs -f' follows what ranks print", NULL},
    {"--log_line_prefix_template", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "'dtrun logs' shows the rank of each line", NULL},
    {"--local_ranks_filter", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "'dtrun logs --rank' shows the output of one rank", NULL},
    {"--duplicate_stdout_filters", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, LOGS, NULL},
    {"--duplicate_stderr_filters", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, LOGS, NULL},
    {"--local_addr", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, FINDS, NULL},
    {"--logs_specs", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, LOGS, NULL},
    {"--numa_binding", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, CORES, NULL},
    {"--signals_to_handle", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "'stop_signal' is the signal that ends the program", NULL},
    {"--shutdown_timeout", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "'grace_seconds' is the time between the signals", NULL},
    {"--virtual_local_rank", NULL, DT_TAKES_NOTHING, DT_FLAG_REFUSED, "dtrun's LOCAL_RANK counts the processes of a node: remove the flag", NULL},
    {"--use_env", NULL, DT_TAKES_NOTHING, DT_FLAG_LEFT, "ranks get their number from their agent", NULL},
    {"--module", "-m", DT_TAKES_NOTHING, DT_FLAG_PART, "nothing: the program is a Python module", NULL},
    {"--no_python", NULL, DT_TAKES_NOTHING, DT_FLAG_PART, "nothing: the program is not a Python script", NULL},
    {"--run_path", NULL, DT_TAKES_NOTHING, DT_FLAG_REFUSED, "the script would run inside of the launcher: remove the flag", NULL},
    {"--print_completion", NULL, DT_TAKES_TEXT, DT_FLAG_REFUSED, HELP, NULL},
    {"--help", "-h", DT_TAKES_NOTHING, DT_FLAG_REFUSED, HELP, NULL},
};

static const dt_flag deepspeed[] = {
    {"--num_nodes", NULL, DT_TAKES_INT, DT_FLAG_PART, "nodes", NULL},
    {"--num_gpus", "--num_accelerators", DT_TAKES_INT, DT_FLAG_PART, "gpus", NULL},
    {"--hostfile", "-H", DT_TAKES_TEXT, DT_FLAG_PART, "nodes: the hosts of the file", NULL},
    {"--include", "-i", DT_TAKES_TEXT, DT_FLAG_PART, "nodes, gpus, and CUDA_VISIBLE_DEVICES of other GPUs than the first", NULL},
    {"--exclude", "-e", DT_TAKES_TEXT, DT_FLAG_REFUSED, "it names what is left out: name what is used, with --include", NULL},
    {"--master_addr", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "dtrun finds the address of the first node; a name of it goes into 'nodes'", NULL},
    {"--master_port", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, FINDS, NULL},
    {"--node_rank", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, NODES, "0"},
    {"--launcher", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, STARTS, NULL},
    {"--launcher_args", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, STARTS, NULL},
    {"--ssh_port", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "put it into ~/.ssh/config", NULL},
    {"--module", NULL, DT_TAKES_NOTHING, DT_FLAG_PART, "nothing: the program is a Python module", NULL},
    {"--no_python", NULL, DT_TAKES_NOTHING, DT_FLAG_PART, "nothing: the program is not a Python script", NULL},
    {"--no_local_rank", NULL, DT_TAKES_NOTHING, DT_FLAG_PART, "nothing: --local_rank is not added", NULL},
    {"--force_multi", NULL, DT_TAKES_NOTHING, DT_FLAG_LEFT, "one node is not special", NULL},
    {"--no_ssh", NULL, DT_TAKES_NOTHING, DT_FLAG_LEFT, "one launch starts all nodes", NULL},
    {"--no_ssh_check", NULL, DT_TAKES_NOTHING, DT_FLAG_LEFT, "'dtrun doctor' checks the nodes", NULL},
    {"--save_pid", NULL, DT_TAKES_NOTHING, DT_FLAG_LEFT, "'dtrun stop' ends all processes", NULL},
    {"--enable_each_rank_log", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "'dtrun logs --rank' has the log of each rank", NULL},
    {"--autotuning", NULL, DT_TAKES_TEXT, DT_FLAG_REFUSED, "the autotuner starts several trainings", NULL},
    {"--bind_cores_to_rank", NULL, DT_TAKES_NOTHING, DT_FLAG_LEFT, CORES, NULL},
    {"--bind_core_list", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, CORES, NULL},
    {"--venv_script", NULL, DT_TAKES_TEXT, DT_FLAG_REFUSED, "it changes the environment of the program: give the path of its python", NULL},
    {"--log_level", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, LOGS, NULL},
    {"--quiet", "-q", DT_TAKES_NOTHING, DT_FLAG_LEFT, LOGS, NULL},
    {"--help", "-h", DT_TAKES_NOTHING, DT_FLAG_REFUSED, HELP, NULL},
};

#define STAYS "nothing: it stays in the command"
#define VALUE(name) {name, NULL, DT_TAKES_TEXT, DT_FLAG_PART, STAYS, NULL}
#define ALONE(name) {name, NULL, DT_TAKES_NOTHING, DT_FLAG_PART, STAYS, NULL}
#define CLOUD "it starts machines of a cloud: name machines in 'nodes'"

static const dt_flag accelerate[] = {
    {"--num_processes", NULL, DT_TAKES_INT, DT_FLAG_PART, "gpus, divided among the nodes", NULL},
    {"--num_machines", NULL, DT_TAKES_INT, DT_FLAG_PART, "nodes", NULL},
    {"--machine_rank", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, NODES, "0"},
    {"--main_process_ip", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "dtrun finds the address of the first node; a name of it goes into 'nodes'", NULL},
    {"--main_process_port", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, FINDS, NULL},
    {"--gpu_ids", NULL, DT_TAKES_TEXT, DT_FLAG_PART, "gpus; it stays in the command", NULL},
    {"--config_file", NULL, DT_TAKES_TEXT, DT_FLAG_PART, "num_processes, num_machines and gpu_ids of it; it stays in the command", NULL},
    {"--module", "-m", DT_TAKES_NOTHING, DT_FLAG_PART, STAYS, NULL},
    {"--quiet", "-q", DT_TAKES_NOTHING, DT_FLAG_PART, STAYS, NULL},
    {"--tee", "-t", DT_TAKES_TEXT, DT_FLAG_PART, STAYS, NULL},
    ALONE("--no_python"), ALONE("--debug"), ALONE("--cpu"), ALONE("--multi_gpu"), ALONE("--enable_cpu_affinity"),
    ALONE("--dynamo_use_fullgraph"), ALONE("--dynamo_use_dynamic"), ALONE("--dynamo_use_regional_compilation"),
    ALONE("--use_deepspeed"), ALONE("--use_fsdp"), ALONE("--use_parallelism_config"), ALONE("--use_megatron_lm"),
    ALONE("--same_network"), ALONE("--downcast_bf16"), ALONE("--fp8_use_autocast_during_eval"),
    VALUE("--mixed_precision"), VALUE("--num_cpu_threads_per_process"), VALUE("--dynamo_backend"), VALUE("--dynamo_mode"),
    VALUE("--log_dir"), VALUE("--role"), VALUE("--rdzv_backend"), VALUE("--rdzv_conf"), VALUE("--max_restarts"),
    VALUE("--monitor_interval"), VALUE("--main_training_function"), VALUE("--deepspeed_config_file"), VALUE("--zero_stage"),
    VALUE("--offload_optimizer_device"), VALUE("--offload_param_device"), VALUE("--offload_optimizer_nvme_path"),
    VALUE("--offload_param_nvme_path"), VALUE("--gradient_accumulation_steps"), VALUE("--gradient_clipping"),
    VALUE("--zero3_init_flag"), VALUE("--zero3_save_16bit_model"), VALUE("--deepspeed_moe_layer_cls_names"),
    VALUE("--fsdp_version"), VALUE("--fsdp_offload_params"), VALUE("--fsdp_min_num_params"), VALUE("--fsdp_sharding_strategy"),
    VALUE("--fsdp_reshard_after_forward"), VALUE("--fsdp_auto_wrap_policy"), VALUE("--fsdp_transformer_layer_cls_to_wrap"),
    VALUE("--fsdp_backward_prefetch"), VALUE("--fsdp_state_dict_type"), VALUE("--fsdp_forward_prefetch"),
    VALUE("--fsdp_use_orig_params"), VALUE("--fsdp_cpu_ram_efficient_loading"), VALUE("--fsdp_sync_module_states"),
    VALUE("--fsdp_activation_checkpointing"), VALUE("--fsdp_activation_checkpointing_offload"),
    VALUE("--megatron_lm_tp_degree"), VALUE("--megatron_lm_use_custom_fsdp"), VALUE("--megatron_lm_no_load_optim"),
    VALUE("--megatron_lm_eod_mask_loss"), VALUE("--megatron_lm_overlap_cpu_optimizer_d2h_h2d"),
    VALUE("--megatron_lm_no_save_optim"), VALUE("--megatron_lm_optimizer_cpu_offload"),
    VALUE("--megatron_lm_use_precision_aware_optimizer"), VALUE("--megatron_lm_decoder_last_pipeline_num_layers"),
    VALUE("--megatron_lm_pp_degree"), VALUE("--megatron_lm_num_micro_batches"), VALUE("--megatron_lm_sequence_parallelism"),
    VALUE("--megatron_lm_recompute_activations"), VALUE("--megatron_lm_use_distributed_optimizer"),
    VALUE("--megatron_lm_gradient_clipping"), VALUE("--megatron_lm_recompute_granularity"),
    VALUE("--megatron_lm_recompute_method"), VALUE("--megatron_lm_recompute_num_layers"),
    VALUE("--megatron_lm_attention_backend"), VALUE("--megatron_lm_expert_model_parallel_size"),
    VALUE("--megatron_lm_context_parallel_size"), VALUE("--megatron_lm_attention_dropout"),
    VALUE("--megatron_lm_hidden_dropout"), VALUE("--megatron_lm_attention_softmax_in_fp32"),
    VALUE("--megatron_lm_expert_tensor_parallel_size"), VALUE("--megatron_lm_calculate_per_token_loss"),
    VALUE("--megatron_lm_use_rotary_position_embeddings"), VALUE("--fp8_backend"), VALUE("--fp8_margin"),
    VALUE("--fp8_interval"), VALUE("--fp8_format"), VALUE("--fp8_amax_history_len"), VALUE("--fp8_amax_compute_algo"),
    VALUE("--fp8_override_linear_precision"), VALUE("--fp8_opt_level"), VALUE("--fp8_enable_fsdp_float8_all_gather"),
    VALUE("--fp8_pad_inner_dim"), VALUE("--parallelism_config_dp_replicate_size"),
    VALUE("--parallelism_config_dp_shard_size"), VALUE("--parallelism_config_tp_size"),
    VALUE("--parallelism_config_cp_size"), VALUE("--parallelism_config_cp_backend"),
    VALUE("--parallelism_config_cp_comm_strategy"), VALUE("--parallelism_config_sp_size"),
    VALUE("--parallelism_config_sp_backend"), VALUE("--parallelism_config_sp_seq_length"),
    VALUE("--parallelism_config_sp_seq_length_is_variable"), VALUE("--parallelism_config_sp_attn_implementation"),
    {"--tpu", NULL, DT_TAKES_NOTHING, DT_FLAG_REFUSED, "dtrun supports NVIDIA GPUs and CPUs", NULL},
    {"--tpu_cluster", "--no_tpu_cluster --tpu_use_sudo", DT_TAKES_NOTHING, DT_FLAG_REFUSED, CLOUD, NULL},
    {"--vm", "--env --aws_access_key_id --aws_secret_access_key", DT_TAKES_TEXT, DT_FLAG_REFUSED, CLOUD, NULL},
    {"--deepspeed_hostfile", "--deepspeed_inclusion_filter --deepspeed_exclusion_filter --deepspeed_multinode_launcher --mpirun_hostfile",
     DT_TAKES_TEXT, DT_FLAG_REFUSED, "it starts other machines itself: name them in 'nodes' and remove the flag", NULL},
    {"--help", "-h", DT_TAKES_NOTHING, DT_FLAG_REFUSED, HELP, NULL},
};
/* clang-format on */

const dt_flag_table dt_launcher_torch_flags = {.program = "torchrun",
                                               .flags = torch,
                                               .count = sizeof(torch) / sizeof(torch[0]),
                                               .attached = true,
                                               .strict = true,
                                               .stops_at_operand = true};
const dt_flag_table dt_launcher_deepspeed_flags = {.program = "deepspeed",
                                                   .flags = deepspeed,
                                                   .count =
                                                       sizeof(deepspeed) / sizeof(deepspeed[0]),
                                                   .attached = true,
                                                   .strict = true,
                                                   .stops_at_operand = true};
const dt_flag_table dt_launcher_accelerate_flags = {.program = "accelerate launch",
                                                    .flags = accelerate,
                                                    .count =
                                                        sizeof(accelerate) / sizeof(accelerate[0]),
                                                    .attached = true,
                                                    .strict = true,
                                                    .stops_at_operand = true};
