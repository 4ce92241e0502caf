#!/usr/bin/env python3
"""Saves what every module of a PyTorch model makes of an input, for `trainer compare --golden`.

Needs PyTorch and safetensors. From Python:

    from save_activations import save_activations
    model = torchvision.models.resnet50()
    model.load_state_dict(torch.load("resnet50.pth"))
    save_activations(model, image, "activations.safetensors")    # image [n, c, h, w]

or for a torchvision model and a weights file, on a random input:

    save_activations.py resnet50 resnet50.pth activations.safetensors --size 224

Then, with the same weights here:

    trainer compare -c job.yaml -o model.pretrained=resnet50.pth --golden activations.safetensors

The file holds `input` and one tensor a module that ran once, under the module's name
("layer1.0.conv1"), in evaluation mode.
"""

import argparse

import torch
from safetensors.torch import save_file


def save_activations(model, image, path, only=None):
    """Runs `model` on `image`; `only(name)` may choose modules."""
    activations, repeated = {}, set()

    def keep(name):
        def hook(module, inputs, output):
            if name in activations:
                repeated.add(name)  # a module used in several places has no one activation
            if torch.is_tensor(output) and torch.is_floating_point(output):
                # A copy: what follows may work in place.
                activations[name] = output.detach().float().contiguous().clone()

        return hook

    hooks = [
        module.register_forward_hook(keep(name))
        for name, module in model.named_modules()
        if name and (only is None or only(name))
    ]
    model.eval()
    with torch.no_grad():
        model(image)
    for hook in hooks:
        hook.remove()
    tensors = {n: a for n, a in activations.items() if n not in repeated}
    save_file({"input": image.contiguous(), **tensors}, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", help="of torchvision.models: resnet50")
    parser.add_argument("weights", help=".pth with its state dictionary")
    parser.add_argument("out", help="safetensors file to write")
    parser.add_argument("--size", type=int, default=224, help="height and width of the input")
    parser.add_argument("--batch", type=int, default=1, help="number of inputs")
    args = parser.parse_args()
    import torchvision

    state = torch.load(args.weights, map_location="cpu", weights_only=True)
    classes = state["fc.weight"].shape[0] if "fc.weight" in state else 1000
    model = torchvision.models.get_model(args.model, weights=None, num_classes=classes)
    model.load_state_dict(state)
    torch.manual_seed(0)
    save_activations(model, torch.randn(args.batch, 3, args.size, args.size), args.out)


if __name__ == "__main__":
    main()
