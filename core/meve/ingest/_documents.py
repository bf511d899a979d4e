"""Reads the text of PDF and Word files, with pypdf and mammoth (extra `files`)."""

from io import BytesIO
from zipfile import BadZipFile, ZipFile

from meve._extras import require_imports
from meve.errors import IngestError
from meve.ingest._html import html_to_markdown

MAX_UNPACKED = 200_000_000
"""The size limit of an unpacked Word file, in bytes."""
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""The first bytes of Word files that are encrypted, or older than 2007."""


def pdf_to_text(data: bytes) -> str:
    """Return the text of a PDF, pages separated by a blank line.

    Raises:
        MissingExtraError: pypdf isn't installed.
        IngestError: the file is encrypted or broken, or its pages hold no text.
    """
    with require_imports("reading PDF files", {"pypdf": "files"}):
        from pypdf import PdfReader
        from pypdf.errors import DependencyError, FileNotDecryptedError
    try:
        reader = PdfReader(BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise IngestError("an encrypted PDF: save it without a password")
        pages = [page.extract_text().strip() for page in reader.pages]
    except (DependencyError, FileNotDecryptedError) as cause:
        raise IngestError("an encrypted PDF: save it without a password") from cause
    except (IngestError, MemoryError):
        raise
    except Exception as cause:  # pypdf raises errors of many kinds for files that break the rules of the format
        raise IngestError(f"a broken PDF: {type(cause).__name__}: {cause!s:.100}") from cause
    text = "\n\n".join(page for page in pages if page)
    if not any(map(str.isalnum, text)):
        raise IngestError("a PDF without text, such as a scan: make it searchable (OCR) first")
    return text


def docx_to_markdown(data: bytes) -> str:
    """Return the text of a Word file as Markdown, without images, comments, headers and footers.

    Raises:
        MissingExtraError: mammoth isn't installed.
        IngestError: the file is encrypted, broken, or too large when unpacked.
    """
    with require_imports("reading Word files", {"mammoth": "files"}):
        from mammoth import convert_to_html
        from mammoth.images import img_element
    if data.startswith(OLE):
        raise IngestError("a Word file that is encrypted or older than 2007: save it as .docx without a password")
    try:
        with ZipFile(BytesIO(data)) as parts:
            size = sum(part.file_size for part in parts.infolist())
        if size > MAX_UNPACKED:
            raise IngestError(f"too large: {size:,} bytes when unpacked, over the limit of {MAX_UNPACKED:,}")
        html = convert_to_html(BytesIO(data), convert_image=img_element(lambda _: {})).value
    except (IngestError, MemoryError):
        raise
    except BadZipFile as cause:
        raise IngestError(f"a broken Word file: {cause}") from cause
    except Exception as cause:  # mammoth raises errors of many kinds for files that break the rules of the format
        raise IngestError(f"a broken Word file: {type(cause).__name__}: {cause!s:.100}") from cause
    return html_to_markdown(html)[0]
