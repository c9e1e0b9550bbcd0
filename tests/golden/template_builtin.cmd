echo '[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "<s> hi <|im_end|>"}]' >m.json
$TERN template $TINY/llama-q8_0.gguf --template chatml --messages m.json
$TERN template $TINY/llama-q8_0.gguf --template chatml --messages - --no-generation-prompt <m.json
