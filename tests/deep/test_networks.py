"""Networks follow the shape of an object, the papers' by name, and draw from one generator."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs the extra deep")

from wellsep.deep.networks import (
    JULE_BLOCKS,
    NetworkPlan,
    Sobel,
    build_network,
    conv_autoencoder,
    deepcluster_convnet,
    dense_autoencoder,
    jule_convnet,
)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("shape", [(1, 4, 4), (1, 8, 8), (3, 17, 23), (1, 28, 28), (1, 112, 92)])
def test_a_convolutional_decoder_gives_the_input_shape_back(shape):
    net = conv_autoencoder(shape, 3)
    layers = net.encoded_layers(torch.zeros(2, *shape))
    decoded = net.decoded_layers(layers[-1])
    assert [d.shape for d in decoded] == [c.shape for c in layers[:-1]]


@pytest.mark.parametrize(
    ("layers", "shape", "maps"),
    [
        ("auto", (1, 28, 28), [(50, 13, 13), (50, 7, 7)]),
        ("auto", (1, 16, 16), [(50, 7, 7), (50, 4, 4)]),
        ("depict-faces", (1, 32, 32), [(50, 17, 17), (50, 9, 9)]),
        ("depict-ytf", (3, 55, 55), [(50, 28, 28), (50, 13, 13)]),
        ("auto", (1, 128, 128), [(50, 63, 63), (50, 32, 32), (50, 16, 16)]),
    ],
)
def test_depicts_encoder_has_the_papers_maps(layers, shape, maps):
    found = conv_autoencoder(shape, 10, layers=layers).encoded_layers(torch.zeros(1, *shape))
    assert [tuple(h.shape[1:]) for h in found[1:-1]] == maps
    assert found[-1].abs().max() <= 1


@pytest.mark.parametrize(
    ("shape", "blocks", "flat"),
    [
        ((1, 16, 16), "auto", 50 * 6 * 6),
        ((1, 28, 28), "auto", 50 * 8 * 8),
        ((1, 32, 32), "auto", 50 * 5 * 5),
        ((1, 128, 128), "auto", 50 * 5 * 5),
        ((1, 112, 92), "auto", 50 * 14 * 12),
        ((1, 8, 8), "auto", 50 * 2 * 2),
        ((1, 28, 28), "faces", 50 * 4 * 4),
    ],
)
def test_jules_convnet_has_as_many_blocks_as_the_image_bears(shape, blocks, flat):
    net = jule_convnet(shape, blocks=blocks)
    assert net[-2].in_features == flat
    features = net(torch.rand(3, *shape, generator=seeded()))
    torch.testing.assert_close(features.norm(dim=1), torch.ones(3))


def test_the_papers_jule_networks_are_there_by_name():
    assert set(JULE_BLOCKS) == {"usps", "mnist", "faces", "coil", "umist"}
    plan = NetworkPlan("jule", {"blocks": "mnist"}, "small")
    mnist = build_network(plan, (1, 28, 28), seeded())
    assert sum(isinstance(m, torch.nn.MaxPool2d) for m in mnist) == 1


def test_vgg16_has_thirteen_convolutions_behind_fixed_gradients():
    with torch.device("meta"):
        net = deepcluster_convnet((3, 64, 64), blocks="vgg16")
    assert sum(isinstance(m, torch.nn.Conv2d) for m in net) == 13
    assert isinstance(net[0], Sobel)
    assert not list(net[0].parameters())


def test_sobel_sees_edges_and_nothing_else():
    flat, edge = torch.ones(1, 3, 5, 5), torch.zeros(1, 3, 5, 5)
    edge[..., 3:] = 1.0
    sobel = Sobel()
    assert sobel(flat)[..., 1:-1, 1:-1].abs().max() == 0
    assert sobel(edge)[0, :, 2, 2].tolist() == [-4.0, 0.0]


def test_dense_networks_flatten_images_and_give_them_back():
    net = dense_autoencoder((3, 5, 4), 2, hidden=(7,))
    z = net.encode(torch.zeros(6, 3, 5, 4))
    assert tuple(z.shape) == (6, 2)
    assert tuple(net.decode(z).shape) == (6, 3, 5, 4)


@pytest.mark.parametrize("blocks", ["conv", "usps"])
def test_vectors_are_refused_by_a_convnet_with_a_remedy(blocks):
    with pytest.raises(ValueError, match="X must hold images .* network='dense'"):
        jule_convnet((64,), blocks=blocks)


def test_images_too_small_for_a_network_are_refused():
    with pytest.raises(ValueError, match="at least 6×6 pixels for this network, got 5×9"):
        jule_convnet((1, 5, 9))


@pytest.mark.parametrize("init", ["glorot", "he", "small"])
def test_weights_come_from_the_generator_alone(init):
    before = torch.get_rng_state()
    plan = NetworkPlan("jule", {}, init)
    nets = [build_network(plan, (1, 16, 16), seeded(seed)) for seed in (1, 1, 2)]
    first, same, other = (dict(net.state_dict()) for net in nets)
    assert all(torch.equal(first[key], same[key]) for key in first)
    assert not torch.equal(first["0.weight"], other["0.weight"])
    assert torch.equal(torch.get_rng_state(), before)


def test_small_weights_have_the_papers_spread():
    net = build_network(NetworkPlan("jule", {}, "small"), (1, 28, 28), seeded())
    assert net[-2].weight.std().item() == pytest.approx(0.01, rel=0.02)
    assert net[-2].bias.abs().max() == 0
