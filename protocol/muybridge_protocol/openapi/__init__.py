"""The service as an OpenAPI 3.1 document, made from the same tables as everything else."""

from muybridge_protocol.openapi.document import openapi_document

__all__ = ["openapi_document"]
