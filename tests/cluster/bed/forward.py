"""Part of programs that hand bytes on, as text: they run where this tree is not, in a guest or another network namespace."""

PUMP = """
import asyncio, sys
async def pump(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()
"""
