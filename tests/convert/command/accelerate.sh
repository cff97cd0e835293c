accelerate launch --multi_gpu --mixed_precision bf16 --num_machines 2 --num_processes=16 --machine_rank $RANK \
    --main_process_ip 10.0.0.1 --main_process_port 29500 --config_file accelerate.yaml train.py --num_processes 3
