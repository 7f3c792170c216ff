# interverse on a CPU, with the tested versions:
#   docker build --build-arg VERSION=0.1.dev0+g$(git rev-parse --short HEAD) -t interverse .
#   docker run -it interverse interverse list
FROM python:3.11-slim-bookworm
RUN apt-get update \
    && apt-get install -y --no-install-recommends libegl1 libgl1-mesa-dri libosmesa6 ffmpeg fonts-dejavu-core gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /interverse
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY interverse interverse
# The image has no git to ask for the version, and no GPU: Torch without CUDA is a tenth of the size.
ARG VERSION=0.1.dev0
RUN SETUPTOOLS_SCM_PRETEND_VERSION="$VERSION" pip install --no-cache-dir -c constraints.txt \
    --extra-index-url https://download.pytorch.org/whl/cpu ".[torch,rl,report,control,rooms,view]"
WORKDIR /runs
CMD ["interverse", "list"]
