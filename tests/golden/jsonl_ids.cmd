# exit 1
cat > p <<'END'
{"ids": [1, 5, 7], "n": 1, "temp": 0, "logit_bias": {"9": 1000}}
{"ids": "1,5,7", "n": 1, "temp": 0}
{"ids": [], "n": 1}
{"ids": [1, -1], "n": 1}
{"ids": [9223372036854775807], "n": 1}
END
$TERN run $TINY/llama-q8_0.gguf --prompts p --logit-bias 8=1000 --logit-bias 9=1 > out; code=$?
grep -o '"prompt_tokens": [^]]*\], "tokens": [^]]*\]\|"error": "[^"]*"' out; exit $code
