deepspeed --num_nodes=2 --num_gpus=8 --master_addr gpu-a --master_port 9901 finetune.py --deepspeed ds.json --model llama
