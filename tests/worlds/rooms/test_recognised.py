"""The classes are told apart by a network that saw other instances of them."""

import numpy as np
import pytest

from interverse.art.rooms.objects import CLASSES
from tests.worlds.rooms.preview import crop

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TRAIN, TEST, EPOCHS, BATCH = 200, 25, 12, 64
FIRST_TEST_SEED = 100_000  # no instance is in both
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def crops(count: int, first: int) -> tuple["torch.Tensor", "torch.Tensor"]:
    rows = [
        (crop(cls, first + 24 * number + label), label)
        for label, cls in enumerate(CLASSES)
        for number in range(count)
    ]
    images = torch.from_numpy(np.stack([image for image, _ in rows])).permute(0, 3, 1, 2)
    labels = torch.tensor([label for _, label in rows])
    return (images.float() / 255 - 0.5).to(DEVICE), labels.to(DEVICE)


def resnet_18() -> "torch.nn.Module":
    config = transformers.ResNetConfig(
        embedding_size=64,
        hidden_sizes=[64, 128, 256, 512],
        depths=[2, 2, 2, 2],
        layer_type="basic",
        num_labels=len(CLASSES),
    )
    return transformers.ResNetForImageClassification(config)


def fit(images: "torch.Tensor", labels: "torch.Tensor", epochs: int) -> "torch.nn.Module":
    model = resnet_18().train().to(DEVICE)
    steps = epochs * (len(labels) // BATCH)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps)
    for _ in range(epochs):
        order = torch.randperm(len(labels))
        for rows in order[: len(order) // BATCH * BATCH].split(BATCH):
            loss = torch.nn.functional.cross_entropy(
                model(varied(images[rows])).logits, labels[rows]
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return model.eval()


def varied(batch: "torch.Tensor") -> "torch.Tensor":
    """Returns the pictures mirrored, shifted by a few pixels and made brighter or darker."""
    mirrored = torch.where(
        torch.rand(len(batch), 1, 1, 1, device=DEVICE) < 0.5, batch.flip(3), batch
    )
    x, y = torch.randint(0, 9, (2,)).tolist()
    padded = torch.nn.functional.pad(mirrored, (4, 4, 4, 4), mode="replicate")
    bright = 1 + 0.2 * torch.randn(len(batch), 1, 1, 1, device=DEVICE)
    return padded[:, :, y : y + 64, x : x + 64] * bright


def accuracy(model: "torch.nn.Module", images: "torch.Tensor", labels: "torch.Tensor") -> float:
    with torch.no_grad():
        guesses = torch.cat([model(batch).logits.argmax(1) for batch in images.split(200)])
    return float((guesses == labels).float().mean())


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_resnet_18_names_instances_it_has_not_seen():
    torch.manual_seed(0)
    model = fit(*crops(TRAIN, first=0), EPOCHS)
    assert accuracy(model, *crops(TEST, first=FIRST_TEST_SEED)) > 0.85
