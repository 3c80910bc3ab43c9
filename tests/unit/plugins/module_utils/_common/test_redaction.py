"""What leaves the site has no secret in it, and still says what happened."""

from __future__ import annotations

import base64
import json
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common import redaction
from ansible_collections.ipu.fabric.plugins.module_utils._common.redaction import redact, redact_text
from hypothesis import given
from hypothesis import strategies as st

WORD = "planted4711"
KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{WORD}MIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----"
TOKEN = "abcdef.0123456789abcdef"
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlIn0.c2lnbmF0dXJl"
# Each has a secret in it, by its form alone or by what stands before it.
TEXTS = {
    "private key": KEY,
    "its first part": KEY[:40],
    "its last part": f"MIIEpAIBAAKCAQEA{WORD}\n-----END PRIVATE KEY-----",
    "its last part in one line": f"MIIEpAIBAAKCAQEA{WORD}\\n-----END PRIVATE KEY-----",
    "in a journal": "\n".join(f"Nov 24 23:06:46 w1 kubelet[1]: {line}" for line in KEY.splitlines()),
    "key in base64": base64.b64encode(KEY.encode()).decode(),
    "join": f"kubeadm join cp1:6443 --token {TOKEN}",
    "bootstrap token": TOKEN,
    "web token": f"got {JWT}",
    "bearer": f"Authorization: Bearer {WORD}",
    "bearer in curl": f'-H "Authorization: Bearer {WORD}"',
    "basic": f"Authorization: Basic {base64.b64encode(WORD.encode()).decode()}",
    "digest": f'Authorization: Digest username="me", response="{WORD}"',
    "url": f"pull https://me:{WORD}@mirror.site/v2/ failed",
    "url, odd password": f"pull https://me:a/{WORD}@mirror.site/v2/ failed",
    "url, name with @": f"https://me@site:{WORD}@mirror.site",
    "url, only a token": f"https://{WORD}@mirror.site",
    "flag": f"start --admin-password {WORD} --verbose",
    "flag with =": f"start --admin-password={WORD} --verbose",
    "variable": f'DB_PASSWORD="{WORD}"',
    "variable, escaped quote": f'DB_PASSWORD="a\\"{WORD}"',
    "systemd": f'Environment="API_TOKEN={WORD}"',
    "JSON in a log": f'msg="answer {{\\"clientSecret\\":\\"{WORD}\\"}}"',
    "object in a log": f'{{"level": "info", "pod": {{"env": [{{"name": "PLAIN", "value": "{WORD}"}}]}}}}',
    "and escaped": f'msg="{{\\"env\\":[{{\\"name\\":\\"PLAIN\\",\\"value\\":\\"{WORD}\\"}}]}}"',
    "environment in a log": f"&Container{{Env:[]EnvVar{{EnvVar{{Name:A,Value:b, {WORD},ValueFrom:nil,}},}},}} failed",
    "environment in YAML": f"- name: PLAIN\n  value: two {WORD}",
    "YAML in one line": f'config="a: b\\npassword: two {WORD}\\n"',
    "arguments in a log": f'args="[\\"--token\\", \\"{WORD}\\"]"',
    "object in a log, and elsewhere": f'got {{"password": "{WORD}"}}, and {WORD} again',
    "quotes escaped twice": f'a="DB_PASSWORD=\\"a\\\\\\"{WORD}\\""',
    "YAML": f"  password: two {WORD}",
    "kubeconfig": f"client-key-data: {WORD}",
    "registry": f'{{"auths": {{"mirror.site": {{"auth": "{WORD}"}}}}}}',
}
# What only stands where a secret stands.
BY_PLACE = {
    "container in a log": f"&Container{{Name:a,Command:[/bin/job --lic {WORD}],Args:[--db me {WORD}],}} failed",
    "command that failed": f'unable to start: exec: "/bin/job --lic {WORD}": stat /bin/job: no such file',
    "login of curl": f"curl -u admin:{WORD} https://mirror.site/v2/",
    "login of skopeo": f"skopeo copy --src-creds=admin:{WORD} a b",
    "password of a client": f"running mysql -uroot -p{WORD} -h db",
    "password of a login": f"docker login -u admin -p {WORD} mirror.site",
    "password of a BMC": f"ipmitool -U ADMIN -P {WORD} chassis",
    "name without a divider": f"PGPASSWORD={WORD} psql",
    "short name": f"IPMI_PW={WORD}",
    "key of something": f"SIGNING_KEY={WORD}",
    "account": f"AccountName=x;AccountKey={WORD};",
    "cookie": f"Set-Cookie: sid={WORD}; HttpOnly",
    "part of a query": f"GET https://h/api?sv=1&sig={WORD}&x=1 200",
    "connection": f"connecting root:{WORD}@tcp(10.0.0.1:3306)/db",
    "encoded URL": f"https%3A%2F%2Fuser%3A{WORD}%40host",
    "url, password with @": f"https://user:p@ss{WORD}@host/",
    "list": f"passwords:\n  - {WORD}\n  - x",
    "next line": f"password: >-\n  {WORD}",
    "manifest": f"kind: Secret\nstringData:\n  cfg: {WORD}",
    "XML": f"<password>{WORD}</password>",
    "SQL": f"CREATE USER x IDENTIFIED BY '{WORD}'",
    "sentence": f"the password is {WORD}",
    "keepalived": f"auth_pass {WORD}",
    "pipe": f"echo {WORD} | kinit admin",
    "etcd": f"etcdctl put /registry/secrets/x/y {WORD}",
}
TEXTS.update(BY_PLACE)
OBJECTS: t.Dict[str, t.Any] = {
    "environment": {"env": [{"name": "PLAIN", "value": WORD}]},
    "value of a name": {"settings": [{"name": "apiToken", "value": WORD}]},
    "key": {"clientSecret": WORD},
    "below a key": {"credentials": {"a": [WORD]}},
    "number": {"password": 4711471147},
    "arguments": {"args": ["--token", WORD]},
    "Secret": {"kind": "Secret", "data": {"plain": WORD}},
    "annotation": {"annotations": {"last-applied": json.dumps({"env": [{"name": "A", "value": WORD}]})}},
    "registries": {"auths": {"mirror.site": {"username": WORD}}},
    "name of a key": {f"https://me:{WORD}@mirror.site": 1},
    "and elsewhere": [{"password": WORD}, f"the program repeats {WORD} here"],
}
SECRETS = (
    WORD,
    TOKEN,
    JWT,
    "4711471147",
    base64.b64encode(WORD.encode()).decode(),
    TEXTS["key in base64"],
    "MIIEpAIBA",
)


def assert_clean(value: object) -> None:
    text = json.dumps(value)
    assert [secret for secret in SECRETS if secret in text] == [], text


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_of_a_log(text: str) -> None:
    assert_clean(redact(f"first line\n{text}\nlast line"))


@pytest.mark.parametrize("item", OBJECTS.values(), ids=OBJECTS)
def test_of_an_object(item: t.Any) -> None:
    assert_clean(redact({"items": [item]}))


TEXT = st.text("ab1 .-:='\"\\{[\n", max_size=8)  # what texts with secrets are taken apart by
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
SECRET = st.sampled_from([*TEXTS.values(), *OBJECTS.values()])


@st.composite
def planted(draw: t.Callable[..., t.Any]) -> t.Any:
    """Any data with a secret somewhere in it: as a value, in a list, within a text, in JSON that is a text."""
    value = draw(SECRET)
    for _layer in range(draw(st.integers(0, 4))):
        way, plain = draw(st.sampled_from(["key", "list", "text", "json"])), draw(PLAIN)
        if way == "key":
            value = {**(plain if isinstance(plain, dict) else {}), draw(TEXT): value}
        elif way == "list":
            value = [plain, value, plain]
        elif way == "json" and isinstance(value, (dict, list)):
            value = json.dumps(value)
        elif way == "text" and isinstance(value, str):
            value = f"a line\n{value}\nanother line"
    return value


@given(planted())
def test_a_secret_anywhere_never_comes_out(value: t.Any) -> None:
    assert_clean(redact(value))


@given(planted() | PLAIN)
def test_twice_is_once(value: t.Any) -> None:
    once = redact(value)
    assert redact(once) == once


@pytest.mark.parametrize(
    "text",
    [
        "failed to pull image mirror.site:5000/a:v1@sha256:" + "0" * 64,
        "Get https://10.96.0.1:443/api/v1/nodes?limit=500: dial tcp 10.96.0.1:443: connect: connection refused",
        "secret \"webhook-cert\" not found in namespace ipu-operator",
        "plugin type=macvlan failed (add): failed to lookup master eth1: Link not found",
        "machine id 9f86d081884c7d659a2feaa0c55ad015, GID fe80:0000:0000:0000:0ac0:ebff:fe12:3456",
        'volume "kube-api-access-x7k2p" pod "coredns-7d4b9c6f5d-x2x4z" (UID: "6f1c2d3e-4b5a-6978-8796-a5b4c3d2e1f0")',
        "returns sandbox id \"3f1c9a0b7d2e4f5a6b7c8d9e0f1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c\"",
        "cipher TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, featureGates CSIMigrationAzureFile InPlacePodVerticalScaling",
        "k8s.io/client-go@v0.34.1/tools/cache/reflector.go:290 etcdserver member 8e9e05c52164694d raft",
        "GPU-6f1c2d3e-4b5a-6978-8796-a5b4c3d2e1f0 MT2118X12345 MCX653106A-HDAT mlx5_0 enp65s0f0np0",
    ],
)  # fmt: skip
def test_what_happened_stays(text: str) -> None:
    assert redact_text(text) == text


def test_the_error_behind_a_token_stays() -> None:
    text = "failed to fetch token: Post https://10.88.0.11:6443: connection refused"
    assert redact_text(text).endswith("https://10.88.0.11:6443: connection refused")


def test_names_of_secrets_and_of_their_volumes_stay() -> None:
    volume = {"name": "certs", "secret": {"secretName": "webhook-cert", "defaultMode": 420}}
    pod = {"spec": {"volumes": [volume], "imagePullSecrets": [{"name": "pull"}]}, "status": "webhook-cert not found"}
    assert redact(pod) == pod


RANDOM = "q7VtB2xKd9Lm4RzY"
IN_BASE64 = base64.b64encode(f"me:{RANDOM}".encode()).decode()
# Written after the redaction, which was not changed for their sake: how many of them it finds tells how good it is.
HELD_BACK = {
    "nginx auth": f"proxy_set_header X-Vault-Token {RANDOM};",
    "kubectl create": f"kubectl create secret generic x --from-literal=pass={RANDOM}",
    "argocd login": f"argocd login a.site --username admin --password {RANDOM}",
    "az": f"az login --service-principal -u app -p {RANDOM} --tenant t",
    "rclone": f"rclone config create s3 s3 secret_access_key {RANDOM}",
    "psql conninfo": f"psql 'host=db user=me password={RANDOM}'",
    "jdbc": f"jdbc:postgresql://db/x?user=me&password={RANDOM}",
    "amqp": f"amqps://me:{RANDOM}@mq.site:5671/v",
    "ldap bind": f"ldapsearch -x -D cn=admin -w {RANDOM} -b dc=x",
    "openssl pass": f"openssl rsa -passin pass:{RANDOM} -in k",
    "gpg": f"gpg --batch --passphrase {RANDOM} -d f",
    "restic": f"RESTIC_PASSWORD={RANDOM} restic backup",
    "s3cmd": f"s3cmd --secret_key={RANDOM} ls",
    "mc alias": f"mc alias set m https://s3.site minio {RANDOM}",
    "vault kv": f"vault kv put secret/x api={RANDOM}",
    "toml": f'[registry]\npassword = "{RANDOM}"',
    "ini": f"[db]\nsecret={RANDOM}",
    "properties": f"spring.datasource.password={RANDOM}",
    "python repr": f"Settings(user='me', api_token='{RANDOM}', debug=False)",
    "ruby hash": f":password => '{RANDOM}'",
    "rust debug": f'Config {{ user: "me", password: "{RANDOM}" }}',
    "escaped twice": f'"{{\\\\\\"token\\\\\\":\\\\\\"{RANDOM}\\\\\\"}}"',
    "basic in curl -H": f"curl -H 'Authorization: Basic {IN_BASE64}' https://x",
    "url in proxy env": f"HTTPS_PROXY=http://me:{RANDOM}@proxy:3128/ set",
    "git remote": f"fatal: unable to access 'https://oauth2:{RANDOM}@git.site/x.git/'",
    "helm registry": f"helm registry login r.site -u me -p {RANDOM}",
    "snmpv3": f"snmpget -v3 -u me -A {RANDOM} -X {RANDOM} host",
    "radius": f"client x {{ secret = {RANDOM} }}",
    "ansible vault id": f"vault_password: {RANDOM}",
    "teams": "https://x.webhook.office.com/webhookb2/" + RANDOM + "@" + RANDOM,
    "sendgrid": "SG." + RANDOM + "ab.cd" + RANDOM + RANDOM,
    "telegram": "bot123456789:AAE" + RANDOM + "abcdefghijklmnop",
    "stripe": "sk_live_" + RANDOM + "abcd",
    "heroku": "HRKU-" + RANDOM + RANDOM,
    "databricks": "dapi" + "0123456789abcdef" * 2,
    "sops age": "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE6",
    "hex key 32": "license 9a8b7c6d5e4f30211203f4e5d6c7b8a9",
    "hex key 64": "psk=" + "9a8b7c6d5e4f3021" * 4,
    "plain words": "the admin uses correct horse battery staple",
    "short pin": "pin 4711",
    "weak word": "login as root with hunter2 worked",
    "uuid token": "x-token: 6f1c2d3e-4b5a-6978-8796-a5b4c3d2e1f0",
    "upper base32": "otp JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP",
    "letters only": "key wJalrXUtnFEMIbPxRfiCYzQw",
    "gcp sa": '{"type": "service_account", "private_key": "-----BEGIN PRIVATE KEY-----\\nMIIE' + RANDOM + '\\n"}',
    "cloud-init": f"chpasswd:\n  list: |\n    root:{RANDOM}",
    "chpasswd": f"echo root:{RANDOM} | chpasswd",
    "journal cut": f"Nov 24 23:06:46 w1 app[1]: token={RANDOM[:16]}",
    "xml attr": f'<server password="{RANDOM}"/>',
    "query form": f"POST grant_type=password&username=me&password={RANDOM}&scope=x",
}
IN_HELD_BACK = (
    *(RANDOM, IN_BASE64, "0123456789abcdef" * 2, "QPZRY9X8", "9a8b7c6d5e4f30211203f4e5d6c7b8a9"),
    *("9a8b7c6d5e4f3021" * 4, "horse battery", "4711", "hunter2", "6f1c2d3e", "JBSWY3", "wJalrXUtnFEMIbPxRfiCYzQw"),
)  # fmt: skip


def test_of_forms_that_it_was_not_written_for_it_finds_nine_of_ten() -> None:
    """Words of a language, and what has neither a name nor a form."""
    left = {
        name
        for name, text in HELD_BACK.items()
        if any(secret in redact_text(text) for secret in IN_HELD_BACK if secret in text)
    }
    assert left == {"plain words", "short pin", "weak word", "upper base32", "letters only"}


@pytest.mark.parametrize(
    "unit", ["://a:", '{"a":', "a=b ", "eyJaaaaaaaa.", "password=\\\"'", "-----BEGIN PRIVATE KEY", "a:b@"]
)
def test_a_program_that_writes_one_long_line_costs_by_its_length(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No pattern sees a line of more than a few thousand characters, and JSON is not parsed again from each brace."""
    parsed: t.List[int] = []
    lines: t.List[int] = []

    class Counting(json.JSONDecoder):
        def raw_decode(self, s: str, idx: int = 0) -> t.Tuple[t.Any, int]:
            try:
                value, end = super().raw_decode(s, idx)
            except json.JSONDecodeError as error:
                parsed.append(error.pos - idx)
                raise
            parsed.append(end - idx)
            return value, end

    class Watched:
        def __init__(self, pattern: t.Pattern[str]) -> None:
            self.pattern = pattern

        def sub(self, instead: str, text: str) -> str:
            lines.extend(map(len, text.split("\n")))
            return self.pattern.sub(instead, text)

    monkeypatch.setattr(json, "JSONDecoder", Counting)
    monkeypatch.setattr(redaction, "FORMS", [(Watched(pattern), instead) for pattern, instead in redaction.FORMS])
    work = []
    for size in (2_000, 4_000, 60_000):
        parsed.clear()
        redact_text(unit * (size // len(unit)))
        work.append(sum(parsed) + 1)
    assert work[1] / work[0] < 3
    assert work[2] < 5 * 60_000
    assert max(lines) < 2 * redaction.LONGEST_LINE  # what is put in its place may be longer


def test_only_the_end_of_a_log_is_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: t.List[str] = []
    monkeypatch.setattr(redaction, "redact_text", lambda text: seen.append(text) or text)
    assert redaction.redact_log(f"password={WORD}\n" + "a line\n" * 100_000, 14) == "a line\n" * 2
    assert redaction.redact_log("y" * 300_000, 10) == redaction.CUT[-10:]
    assert [len(text) <= 4 * redaction.LONGEST_LINE for text in seen] == [True, True]
    assert seen[0].startswith("a line\n")


def test_digests_and_identities_stay_whole() -> None:
    digest = "3f1c9a0b7d2e4f5a6b7c8d9e0f1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c"
    data = {
        "machine_id": digest[:32],
        "sha256": digest,
        "image": f"a@sha256:{digest}",
        "containerID": f"containerd://{digest}",
    }
    assert redact(data) == data
    assert redact_text(f'StopPodSandbox for "{digest}" failed') == 'StopPodSandbox for "3f1c9a0b7d2e(not shown)" failed'
