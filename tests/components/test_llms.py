"""Whatever can complete a prompt is taken as a language model."""

import json
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from meve.components.llms import resolve_llm
from meve.components.llms.http import HttpLanguageModel
from meve.conversation.turn import Turn
from meve.errors import ConfigurationError, ModelError, ModelNotFoundError
from meve.memory import GovernedMemory, LlmExtractor, LlmUpdateJudge
from meve.memory._write.extraction import TurnContext
from meve.routing import MemoryRouter, RouterConfig


@pytest.fixture
def server():
    """Run a server with the chat API, which answers with `replies` and keeps the requests."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.server.requests.append((self.path, dict(self.headers), json.loads(body)))
            status, reply = self.server.replies.pop(0)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(reply).encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as opened:
        opened.requests, opened.replies = [], []
        opened.url = f"http://127.0.0.1:{opened.server_port}/v1"
        threading.Thread(target=opened.serve_forever, daemon=True).start()
        yield opened
        opened.shutdown()


@pytest.fixture
def memory(file):
    with GovernedMemory.open(file) as opened:
        yield opened


def message(text):
    return 200, {"choices": [{"message": {"role": "assistant", "content": text}}]}


def test_function_is_used_as_it_is():
    assert resolve_llm(str.upper)("hi") == "HI"


THOUGHTS = "<think>[maybe] it is different. I must say ESCALATE_REQUIRED, or no: profile? Paris.</think>\n\n"


@pytest.mark.parametrize(
    ("reply", "answer"),
    [(f"{THOUGHTS}Oslo", "Oslo"), ("Yes? </think> No. </think>\nOslo\n", "Oslo\n"), ("\n<think>If Oslo is", ""),
     ("I think: <think> is a tag.", "I think: <think> is a tag."), (" Oslo", " Oslo")],
)  # fmt: skip
def test_thoughts_are_no_part_of_an_answer(reply, answer):
    assert resolve_llm(lambda _: reply)("Where?") == answer


def test_thoughts_decide_nothing_in_the_memory():
    def think(prompt):
        return THOUGHTS + ("[]" if "JSON list" in prompt else "replaces")

    assert LlmUpdateJudge(think).judge("I live in Oslo.", "I live in Rome.").relation == "replaces"
    context = TurnContext(turn=Turn(text="Hi!", speaker="user"), now=datetime(2026, 5, 1, tzinfo=UTC))
    assert LlmExtractor(think).extract(context) == []


def test_thoughts_decide_nothing_in_routing(memory):
    memory.add("My sister Jana is a nurse in Brno.", user_id="alice", source="chat_user")
    told = "Your sister Jana is a nurse who lives in the city of Brno."

    def think(prompt):
        return THOUGHTS + ("deep" if "Which part" in prompt else "yes" if "supported" in prompt else told)

    config = RouterConfig(llm_router=True, grounding="llm")
    answer = MemoryRouter(memory, user_id="alice", llm=think, config=config).answer("What does my sister do?")
    assert (answer.text, answer.escalations) == (told, 0)
    assert (answer.steps[0].plan.decided_by, answer.verdicts[0].check) == ("llm", "llm")


def test_langchain_chat_model_and_chain_are_taken():
    from langchain_core.language_models.fake_chat_models import FakeListChatModel
    from langchain_core.output_parsers import StrOutputParser

    model = FakeListChatModel(responses=["Oslo"])
    assert resolve_llm(model)("Where?") == "Oslo"
    assert resolve_llm(model | StrOutputParser())("Where?") == "Oslo"


def test_llama_index_llm_is_taken():
    from llama_index.core.llms import MockLLM

    assert resolve_llm(MockLLM())("hi there") == "hi there"


def test_transformers_model_is_taken(tmp_path, memory):
    transformers = pytest.importorskip("transformers")
    from meve.components.llms.local import TransformersLanguageModel
    from meve.testing.tiny_models import save_tiny_model

    folder = save_tiny_model(tmp_path / "tokenizer")
    tokenizer = transformers.BertTokenizerFast.from_pretrained(folder)
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer), n_positions=1_024, n_embd=8, n_layer=1, n_head=1, bos_token_id=2, eos_token_id=3
    )
    model = transformers.GPT2LMHeadModel(config)
    model.transformer.ln_f.weight.data.zero_()
    model.transformer.ln_f.bias.data.fill_(1)
    model.transformer.wte.weight.data[tokenizer.convert_tokens_to_ids("moon")] = 1  # so it says nothing else
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    loaded = TransformersLanguageModel.from_name(str(tmp_path / "model"), max_tokens=4)
    assert loaded("cat moon") == "moon moon moon moon"
    assert loaded("cat moon") == TransformersLanguageModel(model.eval(), tokenizer, max_tokens=4)("cat moon")
    with pytest.raises(ValueError, match="prompt must leave 4 of the model's 1024 tokens"):
        loaded("cat " * 1_030)
    pipe = transformers.pipeline("text-generation", model=model, tokenizer=tokenizer)
    assert isinstance(resolve_llm(pipe).model, TransformersLanguageModel)
    memory.add("I live in Oslo.", user_id="alice", source="chat_user")
    answer = MemoryRouter(memory, user_id="alice", llm=loaded).answer("Where do I live?")
    assert answer.abstained


def test_server_gets_the_prompt_as_a_message(server):
    server.replies = [message("Oslo")]
    model = HttpLanguageModel(server.url, model="small", api_key="key", max_tokens=8, extra={"seed": 1})
    assert model("Where?") == "Oslo"
    ((path, headers, body),) = server.requests
    assert (path, headers["Authorization"]) == ("/v1/chat/completions", "Bearer key")
    assert body == {
        "messages": [{"role": "user", "content": "Where?"}], "model": "small", "max_tokens": 8, "temperature": 0.0,
        "seed": 1,
    }  # fmt: skip


def test_address_is_taken_as_a_server(server):
    server.replies = [message(None)]
    assert resolve_llm(server.url)("Where?") == ""


def test_own_api_of_llama_cpp_gets_the_bare_prompt(server):
    server.replies = [(200, {"content": "Oslo", "stop": True})]
    url = server.url.removesuffix("/v1") + "/completion"
    assert HttpLanguageModel(url, max_tokens=8)("Where?") == "Oslo"
    ((path, _, body),) = server.requests
    assert (path, body) == ("/completion", {"prompt": "Where?", "n_predict": 8, "temperature": 0.0})


def test_router_answers_through_either_api_of_llama_cpp(server, memory):
    memory.add("I live in Oslo.", user_id="alice", source="chat_user")
    for url, reply in (
        (server.url, message("Oslo")),
        (server.url.removesuffix("/v1") + "/completion/", (200, {"content": " Oslo\n"})),
    ):
        server.replies = [reply]
        assert MemoryRouter(memory, user_id="alice", llm=url).answer("Where do I live?").text == "Oslo"
    prompts = [body.get("prompt") or body["messages"][0]["content"] for _, _, body in server.requests]
    assert all("I live in Oslo." in prompt for prompt in prompts)


def test_busy_server_is_asked_again(server):
    server.replies = [(503, {}), message("Oslo")]
    assert resolve_llm(server.url)("Where?") == "Oslo"


@pytest.mark.parametrize("reply", [{}, {"choices": []}, [], {"choices": [{"message": {"content": 5}}]}])
def test_answer_of_another_form_is_an_error(server, reply):
    server.replies = [(200, reply)]
    with pytest.raises(ModelError, match="must answer with"):
        resolve_llm(server.url)("Where?")
    server.replies = [(200, reply)]
    with pytest.raises(ModelError, match="must answer with content"):
        resolve_llm(server.url + "/completion")("Where?")


async def _coroutine(prompt):
    return prompt


@pytest.mark.parametrize("given", [5, None, _coroutine, str, " ", object()])
def test_other_object_is_refused(given):
    with pytest.raises(ConfigurationError, match="llm must"):
        resolve_llm(given)


def test_unknown_model_is_named(tmp_path):
    with pytest.raises(ModelNotFoundError, match="nowhere"):
        resolve_llm(str(tmp_path / "nowhere"))


@pytest.mark.parametrize("option", [{"url": "ftp://x"}, {"max_tokens": 0}, {"timeout": 0}, {"retries": -1}])
def test_invalid_option_of_a_server_is_refused(option):
    with pytest.raises(ConfigurationError, match="must be"):
        HttpLanguageModel(**{"url": "http://localhost:1", **option})
