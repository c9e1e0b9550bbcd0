/* template_builtin.c: templates for models whose files carry none, written from the formats that
 * their makers publish: roles, markers and line ends, without tools. Where a format has no place
 * for a system message, it stands in front of the next user's. */
#include "runtime/text.h"

static const struct { const char *name, *source; } builtins[] = {
    {"chatml",
        "{%- for message in messages %}\n"
        "{{- '<|im_start|>' + message.role + '\\n' + (message.content or '') + '<|im_end|>\\n' }}\n"
        "{%- endfor %}\n"
        "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}\n"},
    {"llama2",
        "{%- set ns = namespace(system='') %}\n"
        "{%- for message in messages %}\n"
        "{%- if message.role == 'system' %}\n"
        "{%- set ns.system = '<<SYS>>\\n' + (message.content or '') + '\\n<</SYS>>\\n\\n' %}\n"
        "{%- elif message.role == 'assistant' %}\n"
        "{{- ' ' + (message.content or '')|trim + ' ' + eos_token }}\n"
        "{%- else %}\n"
        "{{- bos_token + '[INST] ' + ns.system + (message.content or '')|trim + ' [/INST]' }}\n"
        "{%- set ns.system = '' %}\n"
        "{%- endif %}\n"
        "{%- endfor %}\n"},
    {"llama3",
        "{{- bos_token }}\n"
        "{%- for message in messages %}\n"
        "{{- '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' }}\n"
        "{{- (message.content or '')|trim + '<|eot_id|>' }}\n"
        "{%- endfor %}\n"
        "{%- if add_generation_prompt %}\n"
        "{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}\n"
        "{%- endif %}\n"},
    {"gemma",
        "{{- bos_token }}\n"
        "{%- set ns = namespace(system='') %}\n"
        "{%- for message in messages %}\n"
        "{%- if message.role == 'system' %}\n"
        "{%- set ns.system = (message.content or '')|trim + '\\n\\n' %}\n"
        "{%- else %}\n"
        "{{- '<start_of_turn>' + ('model' if message.role == 'assistant' else"
        " message.role) + '\\n' }}\n"
        "{{- ns.system + (message.content or '')|trim + '<end_of_turn>\\n' }}\n"
        "{%- set ns.system = '' %}\n"
        "{%- endif %}\n"
        "{%- endfor %}\n"
        "{%- if add_generation_prompt %}{{- '<start_of_turn>model\\n' }}{% endif %}\n"},
    {"mistral",
        "{{- bos_token }}\n"
        "{%- set ns = namespace(system='') %}\n"
        "{%- for message in messages %}\n"
        "{%- if message.role == 'system' %}\n"
        "{%- set ns.system = (message.content or '')|trim + '\\n\\n' %}\n"
        "{%- elif message.role == 'assistant' %}\n"
        "{{- ' ' + (message.content or '')|trim + eos_token }}\n"
        "{%- else %}\n"
        "{{- '[INST] ' + ns.system + (message.content or '')|trim + ' [/INST]' }}\n"
        "{%- set ns.system = '' %}\n"
        "{%- endif %}\n"
        "{%- endfor %}\n"},
    {"phi3",
        "{%- for message in messages %}\n"
        "{{- '<|' + message.role + '|>\\n' if message.role not in ['system', 'user',"
        " 'assistant'] }}\n"
        "{{- '<|system|>\\n' if message.role == 'system' }}\n"
        "{{- '<|user|>\\n' if message.role == 'user' }}\n"
        "{{- '<|assistant|>\\n' if message.role == 'assistant' }}\n"
        "{{- (message.content or '') + '<|end|>\\n' }}\n"
        "{%- endfor %}\n"
        "{%- if add_generation_prompt %}{{- '<|assistant|>\\n' }}{% endif %}\n"},
    {"zephyr",
        "{%- for message in messages %}\n"
        "{{- '<|system|>\\n' if message.role == 'system' }}\n"
        "{{- '<|assistant|>\\n' if message.role == 'assistant' }}\n"
        "{{- '<|user|>\\n' if message.role not in ['system', 'assistant'] }}\n"
        "{{- (message.content or '') + eos_token + '\\n' }}\n"
        "{%- endfor %}\n"
        "{%- if add_generation_prompt %}{{- '<|assistant|>\\n' }}{% endif %}\n"},
    {"vicuna",
        "{%- for message in messages %}\n"
        "{%- if message.role == 'system' %}\n"
        "{{- (message.content or '') + '\\n\\n' }}\n"
        "{%- elif message.role == 'assistant' %}\n"
        "{{- 'ASSISTANT: ' + (message.content or '') + eos_token + '\\n' }}\n"
        "{%- else %}\n"
        "{{- 'USER: ' + (message.content or '') + '\\n' }}\n"
        "{%- endif %}\n"
        "{%- endfor %}\n"
        "{%- if add_generation_prompt %}{{- 'ASSISTANT:' }}{% endif %}\n"},
    {"alpaca",
        "{%- for message in messages %}\n"
        "{%- if message.role == 'system' %}\n"
        "{{- (message.content or '') + '\\n\\n' }}\n"
        "{%- elif message.role == 'assistant' %}\n"
        "{{- '### Response:\\n' + (message.content or '') + eos_token + '\\n\\n' }}\n"
        "{%- else %}\n"
        "{{- '### Instruction:\\n' + (message.content or '') + '\\n\\n' }}\n"
        "{%- endif %}\n"
        "{%- endfor %}\n"
        "{%- if add_generation_prompt %}{{- '### Response:\\n' }}{% endif %}\n"},
    {"deepseek",
        "{{- bos_token }}\n"
        "{%- for message in messages %}\n"
        "{%- if message.role == 'system' %}\n"
        "{{- message.content or '' }}\n"
        "{%- elif message.role == 'assistant' %}\n"
        "{{- '<｜Assistant｜>' + (message.content or '') + '<｜end▁of▁sentence｜>' }}\n"
        "{%- else %}\n"
        "{{- '<｜User｜>' + (message.content or '') }}\n"
        "{%- endif %}\n"
        "{%- endfor %}\n"
        "{%- if add_generation_prompt %}{{- '<｜Assistant｜>' }}{% endif %}\n"},
    {"command-r",
        "{{- bos_token }}\n"
        "{%- for message in messages %}\n"
        "{{- '<|START_OF_TURN_TOKEN|>' }}\n"
        "{{- '<|SYSTEM_TOKEN|>' if message.role == 'system' }}\n"
        "{{- '<|CHATBOT_TOKEN|>' if message.role == 'assistant' }}\n"
        "{{- '<|USER_TOKEN|>' if message.role not in ['system', 'assistant'] }}\n"
        "{{- (message.content or '') + '<|END_OF_TURN_TOKEN|>' }}\n"
        "{%- endfor %}\n"
        "{%- if add_generation_prompt %}{{- '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>'"
        " }}{% endif %}\n"},
    {"granite",
        "{%- for message in messages %}\n"
        "{{- '<|start_of_role|>' + message.role + '<|end_of_role|>' }}\n"
        "{{- (message.content or '') + '<|end_of_text|>\\n' }}\n"
        "{%- endfor %}\n"
        "{%- if add_generation_prompt %}{{- '<|start_of_role|>assistant<|end_of_role|>'"
        " }}{% endif %}\n"},
    {"phi4",
        "{%- for message in messages %}\n"
        "{{- '<|im_start|>' + message.role + '<|im_sep|>' + (message.content or '') +"
        " '<|im_end|>' }}\n"
        "{%- endfor %}\n"
        "{%- if add_generation_prompt %}{{- '<|im_start|>assistant<|im_sep|>' }}{% endif %}\n"},
};
enum { N_BUILTINS = sizeof builtins / sizeof *builtins };

const char *tern_template_name_at(size_t i)
{
    return i < N_BUILTINS ? builtins[i].name : NULL;
}

tern_text tern_template_builtin(const char *name)
{
    for (size_t i = 0; i < N_BUILTINS; i++)
        if (tern_text_is(tern_text_of(builtins[i].name), name))
            return tern_text_of(builtins[i].source);
    return (tern_text){NULL, 0};
}
