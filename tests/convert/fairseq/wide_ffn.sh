fairseq-train data-bin/gbw --task language_modeling --arch transformer_lm_gbw --activation-fn gelu_accurate --bf16 \
    --optimizer sgd --momentum 0.9 --lr 0.1 --lr-scheduler fixed --warmup-updates 10 --max-update 100 --cpu \
    --max-tokens 30000 --tokens-per-sample 1000 --patience 3 --user-dir plugins --dropout 0
