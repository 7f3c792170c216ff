"""Painted floors and backgrounds: a number gives a kind and a seed, and those the pixels.

A picture is painted at one size and other sizes are resized from it, so a number means the same
picture at every size. Painted ones are kept in memory and on disk (`sim/textures/cache.py`).
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from typing import Literal, final

from interverse.art.pictures.catalogue import BACKGROUNDS, FLOORS, PictureKind
from interverse.art.pictures.sets import Picture, check_index, check_size
from interverse.art.pictures.targets import finish
from interverse.art.textures import quantise
from interverse.art.textures.cache import cached
from interverse.art.textures.resize import resize
from interverse.core.rng import generator

MEANS: dict[str, str] = {
    "backgrounds": """
7d8381 7ca9b1 92ab9c 7f9072 6f7b76 87a297 729295 757f85 7f9590 a9b5a5 8ca0a1 5a6b55
a69d91 8a8086 4f5b5c 6a9d95 738580 81afa1 798881 82979d 918c85 39474e 7b9da5 50687d
6f8156 5d6c65 6b8373 828883 6d8857 678070 626251 46504a 647067 5e6957 5f6c61 3f6b58
445255 535d3e 3f5a53 535b52 777646 6a8357 748a68 775d2a 66797e 2f495f 79939d 61809a
6a8288 665550 3c474d 445e75 748c94 546e85 5581a2 848188 a88b88 788c92 b1a5a2 575d61
5b6564 618489 90a09c 497090 81867c 385c5f 566f79 4f6779 476e7e 768d87 6c736c 788b72
666e68 424540 70867e 6a7f7b 666c69 805d50 65948d 6b8463 838b91 5f7173 af836a d2a182
695d58 7b7a7c 8f8f88 665a55 a69888 8d7268 797273 aa988a 7c8fa2 728393 8aaed4 7fb1e3
756d7c 7f96af 8ec7e2 6d9acb 5f4c4d 503e3c af7a6f 9e615e 82686b 53403d 7a5e59 5a4644
8d93a7 656878 988982 7e869e 787d80 817976 2e385f 293779 1e2234 252a42 141829 1c2133
86796e 868073 878f96 8b8177 31485e 5a4e4a 78888b 9fc0b0
""",
    "floors": """
959769 62683b 71875b 777943 68653c 7d8551 938a69 717f65 73794d 73714d 5e6f40 9d9658
646a44 978840 6d7e55 777553 938d70 8d8a4c 706f43 888448 828e53 638344 7d875c 86a259
877b4a 807552 7b7e42 768152 95966e 7b714b 5c772e 7e8d52 717658 646f3a 7f8662 7d775e
756e53 7f713e 80855c 7e7d35 686634 6d8255 849052 67762f 908d65 648035 6e754f 9a925d
6a6344 647046 887743 9d8e4f 858050 6b8f47 8f9758 6e7140 8f9969 7c8f45 8b9360 80785d
7d7e65 818155 938b61 807a4d 857136 786e4b 707e3f 759351 73884b 757954 6d7b4a 847b61
736f2f 838a58 868c3b 666c55 7d9646 778357 74853f 82754c 818f45 88864a 7f7960 7b8048
8d925a 7a7733 908558 6a8547 6d6531 9f9266 787b50 7e7c4b 768d59 898062 82a64c 86835b
747654 857e6a 7f7959 666251 9d8d70 93856f 928673 ae9c7d 9d968a 9e8a67 ac9c82 8e7f66
9d8c71 9b9487 9c917e aa9a7f 92866f 958975 968362 9e8f75 988d7b 8f8066 a99a82 928266
9b8d77 a89d89 9f8f75 a59478 a69781 94866f 968c7b a2957e 96876d 928a7d a89981 8a7e6c
968b7a 9d8d74 9e8d70 9b907e 938670 94866f 9e927f 9f9482 938876 ad9c7f 897c68 938876
90897d 978e80 ab9c82 998d78 9c8f79 a99b82 97896f 8f8574 ac956f ab9b80 948b7d 927f60
978d7d 968a77 7e766a 937b63 90867e 7b6f67 b29e83 967b66 a38064 ca9667 9f9388 c3905f
b7915e 7e6e5f 9c8c77 ae8b5b 95857b a7814d 9a8d81 a7957b a28763 8e6d41 a7805b 9e896c
aa8767 887e75 827972 9b8979 9d8b7d 938675 c69869 af9d8d a58965 ad8662 b89474 b1886b
938777 b68858 88755d 9a8d7b af7e5c 8a6b4e b48e68 907862 a38977 aa937c 937661 91806e
807870 af916a 8f8874 948b77 888377 8f8d87 a39c86 908976 8e8c88 7f7766 8b887f 898475
938b78 827a69 9b917c 8a816b 868278 9e957d 837c6e 9a9587 8b8780 797874 878273 7f7766
898376 81807c 928a7c 7d7972 a49b88 878170 8d887a 928a7c 918b7e 868071 908d85 958972
878072 8f8675 867f70 9b937e 958f81 817d72 918f89 807b6b 837f71 888378 8c826a 998e74
827c70 807c75 b0a79b 8b857c 857f75 c5bdb2 969188 aaadaa afaaa4 93908b 8b847b b6bbb7
736f6a aba499 888b89 8e8c88 94908b 818380 a9a094 82807c 80807d 9c958b 929390 7c7d7b
87827c afa79d 887f5e 858769 7c745e 877c57 737661 857b5d 838367 858064 6b715f 868165
7d8a60 757b5d 9c9772 746d59 7a805d 7c9165 727860 6a6f59 8d8478 787064 979187 7c7975
918573 6b6357 837c72 918b82 81725f 8b8478 887e6e 9c8d7a 77726a 8a8072 8f8a82 827769
9b7a50 897254 9d7a4b af8f65 716e5b 6f604d 9b7a4e 88755a 7e7265 896b45 847c50 947f65
7c623f 997a51 707233 797c4f 7d8133 898939 7b7f41 757542 717832 7e7e36 90964b 85895a
777a49 797c2f 816e5f 978064 534f4a 4d4338 ac9380 9e9186 716657 937e62 655b52 847d77
746457 b7a58d 85837c 706f69 a7a891 84765e b4a58d ac978b a18474 8c9183 968e81 8f938f
8aa2af 85776e b09672 a0856b 918174 b98c58 987751 856b4d 9d8365 906e4c 7e6450 897458
9b8363 775936 645f47 756d56 7d7769 645d48 7d7966 7f7967 7d7559 a19367 91865f 8c8261
""",
}


VERSION = 1  # of what all kinds share; a kind has its own in the catalogue
PAINTED = 256  # pixels a side
_IN_MEMORY = 128

_KINDS: dict[str, tuple[PictureKind, ...]] = {"backgrounds": BACKGROUNDS, "floors": FLOORS}


@final
@dataclass(frozen=True, slots=True)
class Procedural:
    """The painted floors or the painted backgrounds."""

    name: Literal["backgrounds", "floors"]

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(kind.count for kind in _KINDS[self.name])

    @property
    def digest(self) -> str:
        """Name, version and table of the set in one word."""
        table = [_row(kind) for kind in _KINDS[self.name]]
        text = repr((self.name, VERSION, PAINTED, table))
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def kind(self, index: int) -> str:
        """Returns what a picture shows.

        >>> procedural_floors().kind(0), procedural_backgrounds().kind(0)
        ('grass', 'mountains')
        """
        return _find(self.name, check_index(index, self.count, "index"))[0].name

    def picture(self, index: int, size: int) -> Picture:
        """Returns a picture, (size, size, 3), that cannot be written to."""
        index = check_index(index, self.count, "index")
        return _picture(self.name, index, check_size(size))

    def mean_color(self, index: int) -> tuple[float, float, float]:
        """Returns a picture's mean red, green and blue, 0..1, to 1 / 255; it paints nothing."""
        return _means(self.name)[check_index(index, self.count, "index")]


def procedural_floors() -> Procedural:
    """Returns the painted floors, which tile.

    >>> procedural_floors().count
    384
    """
    return Procedural("floors")


def procedural_backgrounds() -> Procedural:
    """Returns the painted backgrounds, which wrap from left to right.

    >>> procedural_backgrounds().count
    128
    """
    return Procedural("backgrounds")


def paint(name: str, index: int) -> Picture:
    """Returns a picture painted anew, without looking into any cache."""
    kind, seed = _find(name, index)
    rng = generator(seed=seed, name=f"pictures/{name}/{kind.name}/{VERSION}")
    image = kind.paint(rng, PAINTED)
    return quantise(finish(rng, image, kind.target, wraps=name == "floors"))


def _row(kind: PictureKind) -> tuple[str | int, ...]:
    """Returns what tells a kind from another; the first version is not named."""
    return (kind.name, kind.count, *((kind.version,) if kind.version > 1 else ()))


def _find(name: str, index: int) -> tuple[PictureKind, int]:
    """Returns a picture's kind and its number within the kind, which is its seed."""
    for kind in _KINDS[name]:
        if index < kind.count:
            return kind, index
        index -= kind.count
    raise IndexError(index)


@functools.lru_cache(maxsize=_IN_MEMORY)
def _picture(name: str, index: int, size: int) -> Picture:
    kind, _ = _find(name, index)
    place = f"{name}-{VERSION}/{index:04d}-{kind.name}-{kind.version}-{size}"
    if size == PAINTED:
        return cached(place, lambda: paint(name, index))
    return cached(
        place, lambda: resize(_picture(name, index, PAINTED), size, wraps=name == "floors")
    )


@functools.cache
def _means(name: str) -> tuple[tuple[float, float, float], ...]:
    words = MEANS[name].split()
    return tuple(
        (int(word[:2], 16) / 255, int(word[2:4], 16) / 255, int(word[4:], 16) / 255)
        for word in words
    )
