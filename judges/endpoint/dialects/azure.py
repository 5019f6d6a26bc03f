"""Azure OpenAI: OpenAI's API with addresses and a key header of its own.

Source: learn.microsoft.com, "Azure OpenAI REST API reference" (deployments with ``api-version``,
and ``/openai/v1``).
"""

from __future__ import annotations

from typing import ClassVar, Final
from urllib.parse import urlsplit

from lmms_eval_captions.judges.endpoint.dialects.openai import OpenaiDialect
from lmms_eval_captions.judges.endpoint.redaction import Key
from lmms_eval_captions.judges.endpoint.urls import with_path

_HOSTS: Final = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")
_PATH: Final = "/chat/completions"


class AzureDialect(OpenaiDialect):
    """Azure's API: a deployment's URL, its full target URI, or a resource's URL."""

    name: ClassVar[str] = "azure"
    key_variables: ClassVar[tuple[str, ...]] = ("AZURE_OPENAI_API_KEY", "OPENAI_API_KEY")
    url_variables: ClassVar[tuple[str, ...]] = ("AZURE_OPENAI_ENDPOINT",)
    default_url: ClassVar[str] = ""
    names_models: ClassVar[bool] = False

    @classmethod
    def is_address(cls, url: str) -> bool:
        """See :class:`.dialect.Dialect`."""
        parts = urlsplit(url)
        return "api-version=" in parts.query or (parts.hostname or "").endswith(_HOSTS)

    def completions_url(self, url: str) -> str:
        """See :class:`.dialect.Dialect`.

        >>> AzureDialect().completions_url("https://r.openai.azure.com/openai/deployments/d?api-version=1")
        'https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=1'
        >>> AzureDialect().completions_url("https://r.openai.azure.com")
        'https://r.openai.azure.com/openai/v1/chat/completions'
        """
        path = urlsplit(url).path.rstrip("/")
        if path.endswith(_PATH):
            return url
        return with_path(url, _PATH if path else f"/openai/v1{_PATH}")

    def models_url(self, url: str) -> str:
        """See :class:`.dialect.Dialect`."""
        path = urlsplit(url).path
        root = path.partition("/deployments/")[0] or "/openai/v1"
        return with_path(urlsplit(url)._replace(path="").geturl(), f"{root}/models")

    def headers(self, api_key: str | None) -> dict[str, str]:
        """See :class:`.dialect.Dialect`."""
        return {"api-key": Key(api_key)} if api_key else {}
