"""Query sockets that answer what a test wants: nng's REP over TCP by hand, STATUS only."""
import json
import socket
import struct
import threading

STATUS = 41


def pack(text):
    """[41, text] in msgpack."""
    data = text.encode()
    return bytes([0x92, STATUS, 0xdb]) + struct.pack(">I", len(data)) + data


class Replier:
    """Answers each question with the next of the given objects; the last one for ever. None: says nothing."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"tcp://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            connection, _ = self.socket.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        stream = connection.makefile("rwb")
        stream.write(b"\0SP\0\0\x31\0\0")  # REP
        stream.flush()
        stream.read(8)
        while size := stream.read(8):
            question = stream.read(struct.unpack(">Q", size)[0])
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            if answer is None:
                continue
            body = question[:4] + pack(json.dumps(answer))
            stream.write(struct.pack(">Q", len(body)) + body)
            stream.flush()
