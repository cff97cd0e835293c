CUDA_VISIBLE_DEVICES=2 ./train_gpt2cu -e gpt2_350M_bf16.bin -k wsd -x 1000 -r 2 -b 2 -t 512
