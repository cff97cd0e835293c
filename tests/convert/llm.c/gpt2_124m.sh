out_dir="log_gpt2_124M"
mpirun -np 8 ./train_gpt2cu \
    -i "dev/data/fineweb10B/fineweb_train_*.bin" \
    -j "dev/data/fineweb10B/fineweb_val_*.bin" \
    -o $out_dir \
    -v 250 -s 20000 -g 144 \
    -h 1 \
    -b 64 -t 1024 -d 524288 \
    -r 0 -z 1 -c 0.1 \
    -l 0.0006 -q 0.0 -u 700 -n 5000 \
    -y 1 \
    -e "d12" -x 18865
