"""/api/v1/lessons: the lessons of the server, and the reading of a lesson of a user's own."""
import json

from support.paths import ROOT

OWN = "# Own\n\nAbout.\n\n## One\n\nText.\n\n```python kernel\nimport numpy as np\n```\n"


def read(server, body):
    return server.request("POST", "/api/v1/lessons", body if isinstance(body, str) else json.dumps(body), {"Content-Type": "application/json"})


def test_the_lessons_are_listed_in_their_order_and_served(server):
    listed = server.get("/api/v1/lessons").json["lessons"]
    files = sorted((ROOT / "explorer/lessons").glob("*.md"))
    assert [l["name"] for l in listed] == [f.stem.split("_", 1)[1] for f in files]
    for about, file in zip(listed, files, strict=True):
        lesson = server.get(f"/api/v1/lessons/{about['name']}").json
        assert file.read_text().startswith(f"# {lesson['title']}\n") and lesson["title"] == about["title"]
        assert len(lesson["steps"]) == about["steps"] >= 4
        assert all(s["kernel"].startswith("import numpy") for s in lesson["steps"])
    assert server.get("/api/v1/lessons/none").status == 404


def test_a_lesson_of_ones_own_is_read_and_not_kept(server):
    answer = read(server, {"text": OWN})
    assert answer.status == 200
    assert [s["title"] for s in answer.json["steps"]] == ["One"] and answer.json["steps"][0]["kernel"] == "import numpy as np\n"
    assert "Own" not in [l["title"] for l in server.get("/api/v1/lessons").json["lessons"]]


def test_what_is_no_lesson_is_refused_with_its_line(server):
    answer = read(server, {"text": OWN.replace("kernel\n", "kernel\n", 1).replace("```\n", "")})
    assert answer.status == 400 and answer.error["code"] == "bad-field" and answer.error["message"].startswith("line 10: ")
    for body in ("{", {"text": 3}, {}, {"text": OWN, "more": 1}, {"text": "x" * (200 << 10)}, {"text": "\0"}, {"text": "# " + "\n" * 100_000}):
        assert read(server, body).status == 400, body
